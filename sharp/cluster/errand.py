"""What a campaign carries out, as its controllers see it: a run, or (in `sharp.sweeps`) many."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self, get_args

from hpc.journal import read_run
from hpc.slurm.profile import Cluster
from sharp.cluster.evaluator import check_walltime
from sharp.config import RunConfig
from sharp.evaluation.protocol import Split
from sharp.llm.cards import ModelCard
from sharp.llm.hosting import server_plans
from sharp.problems import Problem
from sharp.report import write_report
from sharp.runs.advance import Leave, Warn, advance, controlling
from sharp.runs.directory import Run, load_run
from sharp.runs.progress import watching
from sharp.runs.site import Site
from sharp.stages.session import request_of
from sharp.stages.state import Tournament


@dataclass(frozen=True)
class Step:
    """How far a step came. `sentence` says what came of it all once it is `done`, `waiting_for` what is missing."""

    done: bool
    waiting_for: tuple[str, ...] = ()
    sentence: str = ""


class Errand(Protocol):
    """A folder whose work goes on step by step."""

    @property
    def folder(self) -> Path:
        """Where it lies."""
        ...

    @property
    def module(self) -> str:
        """The module that controller jobs run (`python -m MODULE FOLDER TOKEN`)."""
        ...

    @property
    def cards(self) -> Collection[ModelCard]:
        """The models that it asks."""
        ...

    def progress(self) -> int:
        """Return how many effects have been recorded."""
        ...

    def check(self, cluster: Cluster) -> None:
        """Raise `ConfigurationError` where it cannot be carried out on a cluster."""
        ...

    async def step(self, site: Site, leave: Leave, warn: Warn) -> Step:
        """Carry it on until it is done, with its reports written, or `leave` returns."""
        ...


class RunErrand:
    """One run."""

    module = "sharp.cluster.controller"

    def __init__(self, run: Run) -> None:
        self._run = run
        self.folder = run.path.absolute()

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the run that lies in a folder; raises what `load_run` raises."""
        return cls(load_run(folder))

    @property
    def cards(self) -> Collection[ModelCard]:
        """The models of the run."""
        return self._run.cards.values()

    def progress(self) -> int:
        """Return how many effects the run has recorded."""
        return len(read_run(self.folder).effects)

    def check(self, cluster: Cluster) -> None:
        """Raise `ConfigurationError` where a model or an evaluation cannot be had on a cluster."""
        check(self._run.config, self._run.problem, self.cards, cluster)

    async def step(self, site: Site, leave: Leave, warn: Warn) -> Step:
        """Carry the run on, and write its report at the end."""
        with controlling(self._run, warn=warn) as (run, journal), watching(run) as view:
            outcome = await advance(
                run, journal, site, leave=leave, listener=view.on_effect, warn=view.on_warning
            )
            if outcome.state is None:
                return Step(False, outcome.waiting_for)
            report = write_report(run, outcome.state).html
        return Step(True, sentence=f"{result_in_words(outcome.state)} Report: {report}")


def result_in_words(state: Tournament) -> str:
    """Return what came of a run as a sentence."""
    if state.best is None:
        return "No candidate ran successfully."
    scores = state.test.scores if state.test is not None else None
    error = "" if scores is None else f", error {scores.nrmse:.3e} on test data"
    return f"Winner: {state.best}{error}."


def check(config: RunConfig, problem: Problem, cards: Iterable[ModelCard], cluster: Cluster) -> None:
    """Raise `ConfigurationError` where a cluster cannot serve a model of a run, or its jobs are too short for one."""
    server_plans(cards, cluster)
    for split in get_args(Split):
        check_walltime(cluster, request_of(config, problem, "", "", split))
