"""Evaluating candidates by Slurm jobs, with the face of `LocalEvaluator`."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections import defaultdict
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from hpc.files import make_directory
from hpc.parking import Parking
from hpc.sandbox import Policy
from hpc.slurm.book import JobBook
from hpc.slurm.campaign import Campaign
from hpc.slurm.client import Slurm
from hpc.slurm.profile import Cluster
from hpc.work.arrays import Program, usable_s
from hpc.work.dispatch import Dispatcher
from hpc.work.fleet import Patience
from hpc.work.queue import Entry
from sharp.cluster.pilot import entry_options, evaluate_entries
from sharp.clusters import render_script
from sharp.errors import ConfigurationError
from sharp.evaluation.datasets import DataSet, Splits
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.evaluation.subject import Subject
from sharp.evaluation.taskfolder import Task, read_result, write_task
from sharp.problems import Problem

_SCORING_S = 60.0


def make_dispatcher(
    campaign: Campaign,
    book: JobBook,
    slurm: Slurm,
    parking: Parking,
    warn: Callable[[str], None],
    patience: Patience | None = None,
) -> Dispatcher:
    """Return a dispatcher whose elements evaluate task folders."""
    return Dispatcher(
        campaign,
        book,
        slurm,
        parking,
        pilot=Program(evaluate_entries),
        render=render_script,
        warn=warn,
        patience=patience,
    )


def node_policy(cluster: Cluster, asked: Policy) -> Policy:
    """Return how programs are confined on compute nodes: as the profile says, where it says nothing as the run asks."""
    chosen = cluster.sandbox
    return Policy(
        tier=asked.tier if chosen.tier == "auto" else chosen.tier,
        require=asked.require or chosen.require,
        image=asked.image if chosen.image is None else Path(chosen.image),
    )


def needs_s(request: EvaluationRequest) -> int:
    """Return the seconds that an evaluation may take at most, as far as can be foreseen."""
    threads = request.limits.threads
    rounds = 1 if request.stop_above is None else math.ceil(request.shards / threads)
    return math.ceil(request.limits.wall_s * rounds + _SCORING_S)


def check_walltime(cluster: Cluster, request: EvaluationRequest) -> None:
    """Raise `ConfigurationError` where a request may need more than a job of the role `evaluate` has for it."""
    longest_s, whole = usable_s(cluster), cluster.role("evaluate").time
    if needs_s(request) > longest_s:
        raise ConfigurationError(
            f"An evaluation may take {needs_s(request)} s (limits of {request.limits.wall_s:g} s for each run, and "
            f"scoring), and a job of {whole} min has {max(longest_s, 0):.0f} s for it. Raise `roles.evaluate.time` in "
            f"the profile of {cluster.name}, or lower `evaluation.wall_s`."
        )


class SlurmEvaluator:
    """Evaluates requests for one problem on one data set by a campaign's jobs; results stay in `RUN/tasks`.

    A result that is already there is used and not computed again. `sandbox` None: as the cluster's profile says, and
    `node_policy` combines it with what a run asks. `mpi` launches ranks within an element (`mpiexec -n {shards}`).
    """

    def __init__(
        self,
        run_dir: Path,
        problem: Problem,
        dataset: DataSet,
        splits: Splits,
        *,
        dispatcher: Dispatcher,
        sandbox: Policy | None = None,
        mpi: str | None = None,
    ) -> None:
        self._subject = Subject(run_dir.absolute(), problem, dataset, splits)
        self._dispatcher = dispatcher
        self._cluster = dispatcher.campaign.cluster
        self._options = entry_options(sandbox or node_policy(self._cluster, Policy()), mpi)
        self._turn: defaultdict[Path, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def aclose(self) -> None:
        """Do nothing: work in flight stays in Slurm, and the dispatcher is another's."""

    async def evaluate(self, request: EvaluationRequest) -> Evaluation:
        """Run and score one candidate; raises `InfrastructureError` when the machine failed.

        Raises `WorkCancelled` where somebody cancelled jobs of the campaign, `ConfigurationError` where the request
        may need more time than a job has. Cancelling leaves the work in flight, to be found again.
        """
        task, folder = self._subject.task(request), self._subject.folder(request)
        async with self._turn[folder]:
            while (known := read_result(folder, task)) is None:
                check_walltime(self._cluster, request)
                entry = Entry(_id(folder), folder, needs_s(request), self._options)
                self._prepare(entry, task)
                await self._dispatcher.perform(entry, lambda: _is_done(folder, task))
            return known

    def task(self, request: EvaluationRequest) -> Task:
        """Return the task of a request; raises `DataError` where problem or data are not those of this evaluator."""
        return self._subject.task(request)

    def _prepare(self, entry: Entry, task: Task) -> None:
        """Write the task; a folder that nobody works in is cleared before."""
        if not self._dispatcher.queue.holds(entry.id):
            shutil.rmtree(entry.folder, ignore_errors=True)
        make_directory(entry.folder)
        write_task(entry.folder, task)


def _id(folder: Path) -> str:
    """Return a name for a task folder that is its own among all runs of a campaign."""
    return f"{folder.name}-{sha256(str(folder.parent).encode()).hexdigest()[:8]}"


def _is_done(folder: Path, task: Task) -> bool:
    os.listdir(folder)  # noqa: PTH208  makes NFS look again
    return read_result(folder, task) is not None
