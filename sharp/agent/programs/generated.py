"""The values of a program that nobody has read: it is run in the sandbox for every set of points and times."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from hpc.sandbox import Bounds, Completed, Policy, open_interpreter
from sharp.agent.tools import ToolError
from sharp.evaluation.calls import Call, Work
from sharp.evaluation.candidate import run_candidate
from sharp.evaluation.code import modules_imported
from sharp.evaluation.protocol import Failure, FailureKind, Limits
from sharp.evaluation.scratch import remove_tree, scratch_folder

Array = NDArray[np.float64]

FUNCTION = "solve"
MEMORY_MB = 4000
ALLOWED = ("numpy", "scipy")
# Imported once for all programs: what takes longest of that which solvers import.
_PRELOADED = ("numpy", "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.sparse.linalg")


class ProgramFailed(ToolError):
    """A program did not return what was asked for; the message ends with the innermost lines of its traceback."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(f"run_program: {failure.message}\n{failure.traceback}".strip())
        self.kind: FailureKind = failure.kind


@dataclass(frozen=True)
class GeneratedSolution:
    """The fields of a problem as a program computes them; each run may take `wall_s` seconds.

    `evaluate` runs it anew for other points or times and remembers what it returned, as checks ask for the same more
    than once.
    """

    code: str
    fields: int
    steady: bool
    wall_s: float
    _known: dict[tuple[bytes, bytes], Array] = field(default_factory=dict, compare=False, repr=False)

    def evaluate(self, points: Array, times: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k], finite or not.

        The program is given each time once, in ascending order, and none if the problem is steady. Raises
        `ProgramFailed` where it ends by an exception, breaks a limit, or returns what is not real or not of this
        shape, and `InfrastructureError` where the machine is at fault.
        """
        moments, back = np.unique(np.asarray(times, dtype=float), return_inverse=True)
        if self.steady:
            moments, back = np.empty(0), np.zeros(len(times), dtype=np.intp)
        points = np.ascontiguousarray(points, dtype=float)
        key = points.tobytes(), moments.tobytes()
        if key not in self._known:
            self._known[key] = self._run(points, moments)
        return self._known[key][:, back]

    def _run(self, points: Array, moments: Array) -> Array:
        if foreign := modules_imported(self.code) - {*ALLOWED, *sys.stdlib_module_names}:
            found = ", ".join(sorted(foreign))
            allowed = " and ".join(ALLOWED)
            raise ProgramFailed(
                Failure("import", f"It imports {found}; expected {allowed} and the standard library alone.")
            )
        shape = (self.fields, max(1, len(moments)), len(points))
        call = Call("scored", {"points": points, "times": moments}, {}, {"values": shape})
        return _room().values(self.code, Work(FUNCTION, (call,)), Limits(self.wall_s, MEMORY_MB))


class _Room:
    """Where programs run one after the other: a folder, and an interpreter that has imported what they import.

    It stays open to the end of the process, because solutions are asked for values as long as they are in use.
    """

    def __init__(self) -> None:
        self._interpreter = open_interpreter(Policy())
        self._folder = Path(tempfile.mkdtemp(prefix="programs-"))
        self._lock = Lock()

    def run(
        self,
        script: Path,
        *,
        scratch: Path,
        bounds: Bounds,
        environment: Mapping[str, str],
        preload: Sequence[str] = (),  # noqa: ARG002  the same for all
    ) -> Completed:
        """Run a script as an `Interpreter` does."""
        return self._interpreter.run(
            script, scratch=scratch, bounds=bounds, environment=environment, preload=_PRELOADED
        )

    def values(self, code: str, work: Work, limits: Limits) -> Array:
        """Return the one array of the one call; raises `ProgramFailed`."""
        with self._lock, scratch_folder("program-", self._folder) as scratch:
            result = run_candidate(code, work, limits, None, self, scratch).first
        if result.failure is not None:
            raise ProgramFailed(result.failure)
        return np.asarray(result.arrays["values"], dtype=np.float64)

    def close(self) -> None:
        """End the interpreter and remove the folder."""
        self._interpreter.close()
        remove_tree(self._folder)


@cache
def _room_of(process: int) -> _Room:
    del process
    room = _Room()
    atexit.register(room.close)
    return room


def _room() -> _Room:
    """Return the room of this process: one inherited by a fork would be shared with its parent."""
    return _room_of(os.getpid())
