"""Where programs that nobody has read run one after the other: a folder and an interpreter of the sandbox."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from hpc.sandbox import (
    PipeResponder,
    SandboxLimits,
    SandboxPolicy,
    SandboxResult,
    no_answer,
    open_interpreter,
)
from sharp.evaluation.calls import CallPlan
from sharp.evaluation.candidate import CallResult, run_candidate
from sharp.evaluation.scratch import remove_tree, scratch_folder
from sharp.problems.limits import ResourceLimits

# Imported once for all programs: what takes longest of that which solvers import.
_PRELOADED = ("numpy", "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.sparse.linalg")


class ProgramSandbox:
    """A folder, and an interpreter that has imported what programs import.

    It stays open to the end of the process, because solutions are asked for values as long as they are in use.
    """

    def __init__(self) -> None:
        self._interpreter = open_interpreter(SandboxPolicy())
        self._folder = Path(tempfile.mkdtemp(prefix="programs-"))
        self._lock = Lock()

    def run(
        self,
        script: Path,
        *,
        scratch: Path,
        bounds: SandboxLimits,
        environment: Mapping[str, str],
        preload: Sequence[str] = (),  # noqa: ARG002  the same for all
        answer: PipeResponder = no_answer,
    ) -> SandboxResult:
        """Run a script as an `Interpreter` does."""
        return self._interpreter.run(
            script,
            scratch=scratch,
            bounds=bounds,
            environment=environment,
            preload=_PRELOADED,
            answer=answer,
        )

    def result(self, code: str, work: CallPlan, limits: ResourceLimits) -> CallResult:
        """Return what the first call of a program came to; raises `InfrastructureError` for the machine's faults."""
        with self._lock, scratch_folder("program-", self._folder) as scratch:
            return run_candidate(code, work, limits, None, self, scratch).first

    def close(self) -> None:
        """End the interpreter and remove the folder."""
        self._interpreter.close()
        remove_tree(self._folder)


def room() -> ProgramSandbox:
    """Return the room of this process: one inherited by a fork would be shared with its parent."""
    return _room_of(os.getpid())


@cache
def _room_of(process: int) -> ProgramSandbox:
    del process
    opened = ProgramSandbox()
    atexit.register(opened.close)
    return opened
