"""The processes that evaluate: starting one, handing it work, ending it and all below it."""

from __future__ import annotations

import asyncio
import json
import os
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
from sharp.evaluation.launcher import RANKS, found, launcher_settings, reason
from sharp.evaluation.scratch import scratch_folder

_FAREWELL_S = 5.0
_FOR_WORKERS = ("HOME", "PYTHONPATH", "SHARP_DATA", "SHARP_RESOURCES", "XDG_CACHE_HOME")


async def start_worker(sandbox: SandboxPolicy, python: str) -> Worker:
    """Start a worker with a scratch folder of its own; raises `InfrastructureError` where that fails."""
    return await _started([python, *_arguments("sharp.evaluation.worker", sandbox)], {})


async def start_ranks(launcher: Sequence[str], folder: Path, sandbox: SandboxPolicy, python: str) -> Worker:
    """Start MPI ranks that evaluate one task folder; raises `InfrastructureError` where that fails."""
    program = [python, *_arguments(RANKS, sandbox), "--folder", str(folder)]
    return await _started([found(launcher[0], python), *launcher[1:], *program], launcher_settings())


async def _started(command: list[str], variables: dict[str, str]) -> Worker:
    starting = asyncio.ensure_future(_start(command, variables))
    try:
        return await asyncio.shield(starting)
    except asyncio.CancelledError:  # asyncio may wait forever for a process whose start was cancelled
        await (await starting).kill()
        raise


async def _start(command: list[str], variables: dict[str, str]) -> Worker:
    with ExitStack() as stack:
        try:
            scratch = stack.enter_context(scratch_folder("sharp-"))
            said = stack.enter_context(tempfile.TemporaryFile())
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=said,
                env=_environment(scratch) | variables,
                start_new_session=True,
            )
        except OSError as error:
            raise InfrastructureError(f"No evaluation worker could be started: {error}.") from error
        return Worker(process, said, stack.pop_all())


@dataclass(frozen=True)
class Worker:
    """A running worker; `said` is what it writes to standard error, `belongings` its files."""

    process: asyncio.subprocess.Process
    said: IO[bytes]
    belongings: ExitStack

    async def work(self, folder: Path, limit_s: float) -> str | None:
        """Let it evaluate a task folder; return what it says went wrong.

        Raises `InfrastructureError` if it dies or does not answer within the limit.
        """
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(limit_s):
                self.process.stdin.write(json.dumps({"folder": str(folder)}).encode() + b"\n")
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
            raise InfrastructureError(
                f"The evaluation worker failed with exit code {self.process.returncode}: {self._last_words()}"
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

    def _last_words(self) -> str:
        return next((line for line in reversed(self._said()) if line.strip()), "it said nothing")

    def _said(self) -> list[str]:
        self.said.seek(0)
        return self.said.read().decode(errors="replace").splitlines()


def _arguments(program: str, sandbox: SandboxPolicy) -> list[str]:
    image = [] if sandbox.image is None else ["--image", str(sandbox.image.absolute())]
    options = ["--sandbox", sandbox.tier, *(["--require"] if sandbox.require else []), *image]
    return ["-P", "-m", program, *options]


def _environment(scratch: Path) -> dict[str, str]:
    """Return a worker's variables: no secrets, as the candidate it starts can read them."""
    own = {name: os.environ[name] for name in _FOR_WORKERS if name in os.environ}
    job = current_job_id()
    return clean_environment(scratch, threads=1) | own | ({JOB: job} if job else {})
