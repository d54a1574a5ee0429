"""Having written task folders evaluated on this machine, by worker processes or by MPI ranks."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from hpc.errors import InfrastructureError
from hpc.sandbox import SandboxPolicy
from sharp.evaluation.launcher import launcher_command
from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.workers import Worker, start_ranks, start_worker

_SCORING_S = 600.0


class WorkerPool:
    """Evaluates task folders, each call by a worker of its own; workers are started when needed and used again.

    Where `mpi` launches MPI ranks (`mpiexec -n {shards}`), these run what is split into shards, with the same result.
    """

    def __init__(
        self, sandbox: SandboxPolicy | None = None, mpi: str | None = None, python: str = sys.executable
    ) -> None:
        self._sandbox = sandbox or SandboxPolicy()
        self._mpi = mpi
        self._python = python
        self._idle: list[Worker] = []
        self._closed = False

    async def aclose(self) -> None:
        """End all workers, those at work once their evaluations are over."""
        self._closed = True
        idle, self._idle = self._idle, []
        await asyncio.gather(*(worker.close() for worker in idle))

    async def evaluate(self, folder: Path, request: EvaluationRequest) -> None:
        """Evaluate a folder that holds the task of this request; raises `InfrastructureError`.

        Cancelling it ends the worker or the ranks and all that they started.
        """
        limit_s = _SCORING_S + request.limits.wall_s * request.shards
        if self._mpi is not None and request.shards > 1:
            await self._over_ranks(launcher_command(self._mpi, request.shards), folder, limit_s)
        else:
            await self._by_worker(folder, limit_s)

    async def _over_ranks(self, launcher: list[str], folder: Path, limit_s: float) -> None:
        ranks = await start_ranks(launcher, folder, self._sandbox, self._python)
        try:
            await ranks.finish(limit_s)
        finally:
            await ranks.kill()

    async def _by_worker(self, folder: Path, limit_s: float) -> None:
        worker = self._idle.pop() if self._idle else await start_worker(self._sandbox, self._python)
        try:
            error = await worker.work(folder, limit_s)
        except BaseException:
            await worker.kill()
            raise
        # Whatever is wrong with the machine, the next evaluation starts afresh.
        if self._closed or error is not None:
            await worker.close()
        else:
            self._idle.append(worker)
        if error is not None:
            raise InfrastructureError(error)
