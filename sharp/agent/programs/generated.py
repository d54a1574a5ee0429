"""The values of a program that nobody has read: it is run in the sandbox for every set of points and times."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sharp.agent.programs.program_sandbox import room
from sharp.agent.tools import ToolError
from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.code import modules_imported
from sharp.evaluation.protocol import CandidateFailure, FailureKind
from sharp.problems.limits import ResourceLimits

Array = NDArray[np.float64]

FUNCTION = "solve"
MEMORY_MB = 4000
ALLOWED = ("numpy", "scipy")


class ProgramFailed(ToolError):
    """A program did not return what was asked for; the message ends with the innermost lines of its traceback."""

    def __init__(self, failure: CandidateFailure) -> None:
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
                CandidateFailure(
                    "import", f"It imports {found}; expected {allowed} and the standard library alone."
                )
            )
        shape = (self.fields, max(1, len(moments)), len(points))
        call = SolverCall("scored", {"points": points, "times": moments}, {}, {"values": shape})
        result = room().result(self.code, CallPlan(FUNCTION, (call,)), ResourceLimits(self.wall_s, MEMORY_MB))
        if result.failure is not None:
            raise ProgramFailed(result.failure)
        return np.asarray(result.arrays["values"], dtype=np.float64)
