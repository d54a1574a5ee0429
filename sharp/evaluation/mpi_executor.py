"""Sharing the parts of an evaluation among MPI ranks that all go through the same program."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from hpc.errors import ExpectedError, InfrastructureError
from hpc.sandbox import Interpreter, SandboxPolicy
from sharp.evaluation.machine import Runner
from sharp.evaluation.running import run_samples
from sharp.evaluation.task_folder import read_task
from sharp.evaluation.worker import run_task
from sharp.evaluation.worker_context import WorkerContext

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm

T = TypeVar("T")
_LOOK_S = 0.005


class CollectiveError(InfrastructureError):
    """An error of one rank that is raised on all of them."""


def collective_call(comm: Intracomm, function: Callable[[], T]) -> T:
    """Call a function that may differ between ranks, and return what it returned on this one.

    Raises `CollectiveError` on all ranks where the machine failed on one. Any call on one rank meets any on the
    others, so that a rank that fails early is heard by those that have come less or further far.
    """
    error: str | None = None
    try:
        value = function()
    except CollectiveError:
        raise
    except (ExpectedError, OSError) as failure:
        error = str(failure)
    _wait(comm)
    for rank, found in enumerate(comm.allgather(error)):
        if found is not None:
            raise CollectiveError(f"rank {rank}: {found}")
    return value


def _wait(comm: Intracomm) -> None:
    """Wait until all ranks are here; MPI's own waiting would keep a core busy that a candidate may need."""
    barrier = comm.Ibarrier()
    while not barrier.Test():
        time.sleep(_LOOK_S)


class MpiExecutor:
    """Runs parts on the ranks of a communicator; every rank must call it."""

    def __init__(self, comm: Intracomm, interpreter: Interpreter) -> None:
        self._comm = comm
        self._interpreter = interpreter
        self.width: int | None = comm.size

    def map(self, run: Callable[[Runner, T], Any], items: Iterable[T]) -> list[Any]:
        """Return `run(interpreter, item)` for all items in order, each run on one rank."""
        work, size = list(items), self._comm.size
        mine = work[self._comm.rank :: size]
        shares = self._comm.allgather(
            collective_call(self._comm, lambda: [run(self._interpreter, item) for item in mine])
        )
        return [shares[number % size][number // size] for number in range(len(work))]

    def broadcast_decision(self, question: Callable[[], T]) -> T | None:
        """Return rank 0's answer on all ranks: processors that round differently must not part."""
        answer = collective_call(self._comm, lambda: question() if self._comm.rank == 0 else None)
        return self._comm.bcast(answer)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Do nothing: the interpreter belongs to the context."""


def evaluate_over(comm: Intracomm, folder: Path, policy: SandboxPolicy) -> None:
    """Evaluate a task folder, which all ranks have to see; raises `CollectiveError` where the machine failed."""
    collective_call(comm, lambda: _work(comm, folder, policy))


def _work(comm: Intracomm, folder: Path, policy: SandboxPolicy) -> None:
    """Evaluate on rank 0; elsewhere run parts alone, where there are any."""
    with WorkerContext(policy, executor=partial(MpiExecutor, comm)) as context:
        if comm.rank == 0:
            run_task(folder, context)
            return
        task = read_task(folder)
        if task.request.study == "score" and task.request.shards > 1:
            run_samples(task.request, context.samples.get(task), context)
