"""The tool that makes a solution of a program."""

from __future__ import annotations

import math
import time
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from sharp.agent.programs.generated import FUNCTION, GeneratedSolution, ProgramFailed
from sharp.agent.toolkit.solver_tools import SOLUTION
from sharp.agent.tools import Parameters, Tool, ToolContext, ToolResult
from sharp.evaluation.protocol import CandidateFailure
from sharp.problems.spec import Identifier
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.refine import RefinementStudy, ResolutionAttempt
from sharp.solvers.sample_points import recurrence

METHOD = "program"
# A program that returns finite values of the right shape here counts as one that runs.
_POINTS = 7
_MOMENTS = 3

Interval = tuple[float, float]


class ProgramArgs(Parameters):
    """A program, and what its author says of the problem: where it is posed, for how long, and for which fields.

    `bounds` holds the ends of each axis of the domain, or of the smallest box around it; `inside` some points of a
    domain that is not a box.
    """

    code: Annotated[str, Field(min_length=1)]
    bounds: Annotated[tuple[Interval, ...], Field(min_length=1, max_length=3)]
    time: Interval | None = None
    fields: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    inside: tuple[tuple[float, ...], ...] = ()

    @model_validator(mode="after")
    def _sound(self) -> ProgramArgs:
        for low, high in (*self.bounds, *([self.time] if self.time else [])):
            if low >= high:
                raise ValueError(f"expected ascending ends, found {low:g} and {high:g}")
        if any(len(point) != len(self.bounds) for point in self.inside):
            raise ValueError(f"inside: expected points of {len(self.bounds)} coordinates")
        return self

    @property
    def points(self) -> Array:
        """Points [m, d] of the domain."""
        if self.inside:
            return np.array(self.inside)
        low, high = np.transpose(self.bounds)
        return np.asarray(low + (high - low) * recurrence(_POINTS, len(low)))

    @property
    def moments(self) -> Array:
        """Times [k] of the time interval, both ends included; one of no meaning for a steady problem."""
        return np.zeros(1) if self.time is None else np.linspace(*self.time, _MOMENTS)


def _tried(call: ToolContext) -> ToolResult:
    written: ProgramArgs = call.parameters
    program = GeneratedSolution(written.code, len(written.fields), written.time is None, call.wall_s)
    began = time.perf_counter()
    values = program.evaluate(written.points, written.moments)
    if failure := _not_finite(written, values):
        raise ProgramFailed(failure)
    found = _refinement(program, time.perf_counter() - began)
    return ToolResult({"solution": found}, {"method": METHOD, "fields": list(written.fields)})


def _not_finite(written: ProgramArgs, values: Array) -> CandidateFailure | None:
    bad = np.argwhere(~np.isfinite(values))
    if not len(bad):
        return None
    name, moment, point = bad[0]
    place = ", ".join(f"{coordinate:.4g}" for coordinate in written.points[point])
    when = f" and time {written.moments[moment]:.4g}" if written.time else ""
    first = f"the first is {written.fields[name]} at the point ({place}){when}"
    return CandidateFailure("non_finite", f"{len(bad)} of {values.size} values are NaN or infinite; {first}.")


def _refinement(program: GeneratedSolution, seconds: float) -> RefinementStudy:
    """Return the solution with an error that is not known: a program says nothing of its own."""
    solution = DiscreteSolution(METHOD, 0, program.evaluate, 0)
    return RefinementStudy(
        METHOD, (ResolutionAttempt(METHOD, 0, seconds, 0),), solution, math.inf, None, converged=False
    )


RUN_PROGRAM = Tool(
    "run_program",
    "solver",
    "Runs a program in a sandbox and takes what it returns for the solution.",
    ProgramArgs,
    (),
    (SOLUTION,),
    _tried,
    cost="seconds",
    limits=f"The program defines {FUNCTION}(points, times) and may import numpy and scipy alone. What is looked at is "
    "whether it runs and returns finite values of the right shape, not whether they are right.",
    examples=(
        {
            "code": f"import numpy as np\n\ndef {FUNCTION}(points, times):\n"
            "    return np.exp(-times[:, None])[None] * np.sin(points[None, None, :, 0])\n",
            "bounds": [[0, 3.141592653589793]],
            "time": [0, 1],
            "fields": ["u"],
        },
    ),
)
