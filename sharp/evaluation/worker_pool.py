"""Having written task folders evaluated on this machine, by worker processes or by MPI ranks."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hpc.errors import InfrastructureError
from hpc.processes import kill_tree
from hpc.sandbox import SandboxPolicy, clean_environment
from hpc.slurm import JOB, current_job_id
from sharp.evaluation.launcher import RANKS, found, launcher_command, launcher_settings, reason
from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.scratch import scratch_folder

_SCORING_S = 600.0
_FAREWELL_S = 5.0
_FOR_WORKERS = ("HOME", "PYTHONPATH", "SHARP_DATA", "SHARP_RESOURCES", "XDG_CACHE_HOME")


class WorkerPool:
    """Evaluates task folders, each call by a worker of its own; workers are started when needed and used again.

    Where `mpi` launches MPI ranks (`mpiexec -n {shards}`), these run what is split into shards, with the same result.
    Without `flush` a worker's result may be gone after a loss of power: for those who record it at once.
    """

    def __init__(
        self,
        sandbox: SandboxPolicy | None = None,
        mpi: str | None = None,
        python: str = sys.executable,
        *,
        flush: bool = True,
    ) -> None:
        self._sandbox = sandbox or SandboxPolicy()
        self._mpi = mpi
        self._python = python
        self._flush = flush
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
        # A process may be followed by another that checks its repetitions.
        limit_s = _SCORING_S + 2 * request.limits.wall_s * request.shards
        if self._mpi is not None and request.shards > 1:
            ranks = await self._start_ranks(launcher_command(self._mpi, request.shards), folder)
            try:
                await ranks.finish(limit_s)
            finally:
                await ranks.kill()
            return
        worker = self._idle.pop() if self._idle else await self._start_worker()
        try:
            error = await worker.work(folder, limit_s, flush=self._flush)
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

    async def _start_worker(self) -> Worker:
        return await start_process([self._python, *self._arguments("sharp.evaluation.worker")], {})

    async def _start_ranks(self, launcher: Sequence[str], folder: Path) -> Worker:
        program = [self._python, *self._arguments(RANKS), "--folder", str(folder)]
        command = [found(launcher[0], self._python), *launcher[1:], *program]
        return await start_process(command, launcher_settings())

    def _arguments(self, program: str) -> list[str]:
        sandbox = self._sandbox
        image = [] if sandbox.image is None else ["--image", str(sandbox.image.absolute())]
        options = ["--sandbox", sandbox.tier, *(["--require"] if sandbox.require else []), *image]
        return ["-P", "-m", program, *options]


@dataclass(frozen=True)
class Worker:
    """A running worker; `said` is what it writes to standard error, `belongings` its files."""

    process: asyncio.subprocess.Process
    said: IO[bytes]
    belongings: ExitStack

    async def work(self, folder: Path, limit_s: float, *, flush: bool) -> str | None:
        """Let it evaluate a task folder; return what it says went wrong.

        Raises `InfrastructureError` if it dies or does not answer within the limit.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(limit_s):
                asked = {"folder": str(folder), "flush": flush}
                self.process.stdin.write(json.dumps(asked).encode() + b"\n")
                await self.process.stdin.drain()
                answer = await self.process.stdout.readline()
                if not answer.endswith(b"\n"):
                    await self.process.wait()
        except TimeoutError:
            raise InfrastructureError(f"The evaluation worker did not answer within {limit_s:g} s.") from None
        except OSError:
            answer = b""
            await self.process.wait()
        if not answer.endswith(b"\n"):
            last = next((line for line in reversed(self._said()) if line.strip()), "no output")
            raise InfrastructureError(
                f"The evaluation worker failed with exit code {self.process.returncode}: {last}"
            )
        return json.loads(answer)["error"]  # type: ignore[no-any-return]

    async def finish(self, limit_s: float) -> None:
        """Let it come to its end; raises `InfrastructureError` where that is none in good order or not in time."""
        try:
            async with asyncio.timeout(limit_s):
                printed, _ = await self.process.communicate()
        except TimeoutError:
            raise InfrastructureError(f"The evaluation's ranks did not end within {limit_s:g} s.") from None
        if self.process.returncode:
            said = [*self._said(), *printed.decode(errors="replace").splitlines()]
            raise InfrastructureError(
                f"The evaluation's ranks failed with exit code {self.process.returncode}: {reason(said)}"
            )

    async def close(self) -> None:
        """Let it end by itself, which it does when there is no more work."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        await self._end()

    async def kill(self) -> None:
        """End it in the midst of its work, and all that it has started."""
        if self.process.returncode is None:
            self.process.terminate()
        await self._end()

    async def _end(self) -> None:
        try:
            async with asyncio.timeout(_FAREWELL_S):
                await self.process.wait()
        except TimeoutError:
            kill_tree(self.process.pid)
            await self.process.wait()
        finally:
            # Else asyncio keeps its ends of the pipes until all who have inherited the other ends are gone.
            self.process._transport.close()  # type: ignore[attr-defined]  # noqa: SLF001
            self.belongings.close()

    def _said(self) -> list[str]:
        self.said.seek(0)
        return self.said.read().decode(errors="replace").splitlines()


async def start_process(command: list[str], variables: dict[str, str]) -> Worker:
    """Start a worker, or ranks, with a scratch folder of its own; raises `InfrastructureError` where that fails."""
    starting = asyncio.ensure_future(_start(command, variables))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio may wait forever for a process whose start was cancelled
        await (await starting).kill()
        raise


async def _start(command: list[str], variables: dict[str, str]) -> Worker:
    job = current_job_id()
    # No secrets: the candidate that a worker starts can read its variables.
    own = {name: os.environ[name] for name in _FOR_WORKERS if name in os.environ} | (
        {JOB: job} if job else {}
    )
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(scratch_folder("sharp-"))
            said = stack.enter_context(tempfile.TemporaryFile())
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                env=clean_environment(scratch, threads=1) | own | variables,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"No evaluation worker could be started: {error}.") from error
        return Worker(process, said, stack.pop_all())
