"""Running candidates side by side: helper processes of a worker, each with an interpreter of its own.

An interpreter runs one script at a time in its process, hence the processes. `python -P -m
sharp.evaluation.interpreter_pool` is such a helper: it reads pickled arguments of `Interpreter.run` from standard input
and answers with what came of it.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from hpc.errors import HpcError, InfrastructureError
from hpc.processes import die_with_parent, kill_tree
from hpc.sandbox import SandboxLimits, SandboxPolicy, SandboxResult, open_interpreter
from sharp.evaluation.machine import Runner

T = TypeVar("T")
_FAREWELL_S = 5.0


class ShardExecutor(Protocol):
    """Whoever runs parts side by side: at most `width` of them, if that is a number."""

    width: int | None

    def map(self, run: Callable[[Runner, T], Any], items: Iterable[T]) -> list[Any]:
        """Return `run(runner, item)` for all items, in order."""
        ...

    def broadcast_decision(self, question: Callable[[], T]) -> T | None:
        """Return the answer that holds for all who go through the same program."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class InterpreterPool:
    """Helpers that are started when first needed and kept until the pool is closed."""

    width: int | None = None

    def __init__(self, policy: SandboxPolicy) -> None:
        self._policy = policy
        self._helpers: list[RemoteInterpreter] = []

    def map(self, run: Callable[[RemoteInterpreter, T], Any], items: Iterable[T]) -> list[Any]:
        """Return `run(helper, item)` for all items, run side by side, in order; ends the pool on any error."""
        work = list(items)
        self._helpers += [RemoteInterpreter(self._policy) for _ in range(len(work) - len(self._helpers))]
        free: SimpleQueue[RemoteInterpreter] = SimpleQueue()
        for helper in self._helpers:
            free.put(helper)

        def run_one(item: T) -> Any:
            helper = free.get()
            try:
                return run(helper, item)
            finally:
                free.put(helper)

        with ThreadPoolExecutor(len(work)) as threads:
            try:
                return list(threads.map(run_one, work))
            except BaseException:
                self.close()  # else the threads would wait for their helpers
                raise

    def broadcast_decision(self, question: Callable[[], T]) -> T | None:
        """Return the answer."""
        return question()

    def close(self) -> None:
        """End all helpers and what they run."""
        helpers, self._helpers = self._helpers, []
        for helper in helpers:
            helper.process.terminate()
        for helper in helpers:
            helper.end()


class RemoteInterpreter:
    """Runs scripts as an `Interpreter` does, in another process."""

    warm = True

    def __init__(self, policy: SandboxPolicy) -> None:
        """Start the process; raises `InfrastructureError` where that fails."""
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "sharp.evaluation.interpreter_pool"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        except OSError as error:
            raise InfrastructureError(f"No helper could be started: {error}.") from error
        self._send(policy)

    def run(self, script: Path, *, scratch: Path, bounds: SandboxLimits, **options: Any) -> SandboxResult:
        """Run a script; see `Interpreter.run`."""
        self._send({"script": script, "scratch": scratch, "bounds": bounds, **options})
        assert self.process.stdout is not None
        try:
            answer = pickle.load(self.process.stdout)  # noqa: S301  it comes from our own process
        except EOFError:
            raise InfrastructureError("A helper of the evaluation worker has died.") from None
        if isinstance(answer, HpcError):
            raise answer
        return answer  # type: ignore[no-any-return]

    def end(self) -> None:
        """Wait until it has ended, by force if need be."""
        try:
            self.process.wait(_FAREWELL_S)
        except subprocess.TimeoutExpired:
            kill_tree(self.process.pid)
            self.process.wait()
        for pipe in filter(None, (self.process.stdin, self.process.stdout)):
            with suppress(BrokenPipeError):
                pipe.close()

    def _send(self, message: SandboxPolicy | Mapping[str, Any]) -> None:
        assert self.process.stdin is not None
        try:
            pickle.dump(message, self.process.stdin)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise InfrastructureError("A helper of the evaluation worker has died.") from None


def main() -> None:
    """Run what is asked until standard input ends."""
    die_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with open_interpreter(_next()) as interpreter:
        while (arguments := _next()) is not None:
            answer: SandboxResult | HpcError
            try:
                answer = interpreter.run(**arguments)
            except HpcError as error:
                answer = error
            pickle.dump(answer, sys.stdout.buffer)
            sys.stdout.flush()


def _next() -> Any:
    try:
        return pickle.load(sys.stdin.buffer)  # noqa: S301  it comes from the worker
    except EOFError:
        return None


if __name__ == "__main__":
    main()
