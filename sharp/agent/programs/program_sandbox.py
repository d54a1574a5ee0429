"""Where programs that nobody has read run one after the other: a folder and an interpreter of the sandbox."""

from __future__ import annotations

import atexit
import os
import tempfile
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from hpc.sandbox import SandboxPolicy, SandboxResult, open_interpreter
from sharp.evaluation import CallPlan, CallResult, clear_away, run_candidate, scratch_folder
from sharp.problems import ResourceLimits

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

    def run(self, script: Path, **options: Any) -> SandboxResult:
        """Run a script as an `Interpreter` does, with the same modules imported before for all."""
        return self._interpreter.run(script, **{**options, "preload": _PRELOADED})

    def result(self, code: str, work: CallPlan, limits: ResourceLimits) -> CallResult:
        """Return what the first call of a program came to; raises `InfrastructureError` for the machine's faults."""
        with self._lock, scratch_folder("program-", self._folder) as scratch:
            return run_candidate(code, work, limits, None, self, scratch).first

    def close(self) -> None:
        """End the interpreter and remove the folder."""
        self._interpreter.close()
        clear_away(self._folder)


def program_sandbox() -> ProgramSandbox:
    """Return the sandbox of this process: one inherited by a fork would be shared with its parent."""
    return _sandbox_of(os.getpid())


@cache
def _sandbox_of(_process: int) -> ProgramSandbox:
    opened = ProgramSandbox()
    atexit.register(opened.close)
    return opened
