"""A run as a campaign's controllers see it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Self, get_args

from hpc.campaign import StopWaiter, Warn, WorkloadProgress
from hpc.journal import read_run
from hpc.slurm import ClusterProfile, ControllerContext
from sharp.config import RunConfig
from sharp.evaluation import Split
from sharp.llm import ModelCard, server_plans
from sharp.problems import Problem
from sharp.runs.advance import acquire_run, advance
from sharp.runs.cluster.slurm_backend import SlurmBackend, check_walltime
from sharp.runs.directory import RunDirectory, load_run
from sharp.runs.progress import progress_view
from sharp.tournament import Tournament, request_of

# What controller jobs run (`python -P -m MODULE FOLDER TOKEN`); named, not imported, for it is above this room.
CONTROLLER = "sharp.controller"

WriteReport = Callable[[RunDirectory, Tournament], Path]


class RunWorkload:
    """One run."""

    module = CONTROLLER

    def __init__(self, run: RunDirectory, write_report: WriteReport) -> None:
        self._run, self._write_report = run, write_report
        self.folder = run.path.absolute()

    @classmethod
    def of(cls, folder: Path, write_report: WriteReport) -> Self:
        """Return the run that lies in a folder; raises what `load_run` raises."""
        return cls(load_run(folder), write_report)

    @property
    def cards(self) -> Collection[ModelCard]:
        """The models of the run."""
        return self._run.cards.values()

    def progress(self) -> int:
        """Return how many effects the run has recorded."""
        return len(read_run(self.folder).effects)

    def check(self, cluster: ClusterProfile) -> None:
        """Raise `ConfigurationError` where a model or an evaluation cannot be had on a cluster."""
        check(self._run.config, self._run.problem, self.cards, cluster)

    def backend(self, control: ControllerContext, warn: Warn) -> AbstractAsyncContextManager[SlurmBackend]:
        """Return the jobs that evaluate and serve for the run."""
        return SlurmBackend(control, self.cards, warn)

    async def step(self, backend: SlurmBackend, leave: StopWaiter, warn: Warn) -> WorkloadProgress:
        """Carry the run on, and write its report at the end."""
        with acquire_run(self._run, warn=warn) as (run, journal), progress_view(run) as view:
            outcome = await advance(
                run, journal, backend, leave=leave, listener=view.on_effect, warn=view.on_warning
            )
            if outcome.state is None:
                return WorkloadProgress(False, outcome.waiting_for)
            state, report = outcome.state, self._write_report(run, outcome.state)
        result = "No candidate ran successfully."
        if state.best is not None:
            scores = state.test.scores if state.test is not None else None
            error = (
                "" if scores is None or scores.nrmse is None else f", error {scores.nrmse:.3e} on test data"
            )
            if scores is not None and scores.verification is not None:
                error = f", {scores.verification}"
            result = f"Winner: {state.best}{error}."
        return WorkloadProgress(True, sentence=f"{result} Report: {report}")


def check(config: RunConfig, problem: Problem, cards: Iterable[ModelCard], cluster: ClusterProfile) -> None:
    """Raise `ConfigurationError` where a cluster cannot serve a model of a run, or its jobs are too short for one."""
    server_plans(cards, cluster)
    for split in get_args(Split):
        check_walltime(cluster, request_of(config, problem, "", "", split))
