"""Programs that a model writes instead of choosing parameters of tools: asked for, run, taken for a solution."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from pydantic import Field, model_validator

from sharp.agent.built_tools import (
    MODULE,
    Library,
    signature,
    tools_built,
    tools_imported,
    with_tools,
)
from sharp.agent.memory import ToolRecord
from sharp.agent.programs.program_sandbox import program_sandbox
from sharp.agent.responses import WrittenProgram, read_declined
from sharp.agent.toolkit.solver_tools import SOLUTION
from sharp.agent.tools import Parameters, ToolContext, ToolError, ToolResult, tool
from sharp.error_messages import valid_values
from sharp.errors import ReplyError
from sharp.evaluation import CallPlan, CandidateFailure, FailureKind, SolverCall, modules_imported
from sharp.llm import extract_code, extract_json, render, texts_of
from sharp.problems import Identifier, ResourceLimits
from sharp.solvers import Array, DiscreteSolution, RefinementStudy, ResolutionAttempt, recurrence

METHOD = "program"
FUNCTION = "solve"
MEMORY_MB = 4000
ALLOWED = ("numpy", "scipy")
# A program that returns finite values of the right shape here counts as one that runs.
_POINTS = 7
_MOMENTS = 3

Interval = tuple[float, float]


class ProgramFailed(ToolError):
    """A program did not return what was asked for; the message ends with the innermost lines of its traceback."""

    def __init__(self, failure: CandidateFailure) -> None:
        super().__init__(f"run_program: {failure.message}\n{failure.traceback}".strip())
        self.kind: FailureKind = failure.kind


@dataclass(frozen=True)
class GeneratedSolution:
    """The fields of a problem as a program computes them; each run may take `wall_s` seconds.

    `tools` are the built tools that it imports.
    `evaluate` runs it anew for other points or times and remembers what it returned, as checks ask for the same more
    than once.
    """

    code: str
    fields: int
    steady: bool
    wall_s: float
    tools: Library = field(default_factory=dict)
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
        known = {*ALLOWED, *sys.stdlib_module_names, *([MODULE] if self.tools else [])}
        if foreign := modules_imported(self.code) - known:
            found = ", ".join(sorted(foreign))
            allowed = " and ".join(ALLOWED)
            raise ProgramFailed(
                CandidateFailure(
                    "import", f"It imports {found}; expected {allowed} and the standard library alone."
                )
            )
        shape = (self.fields, max(1, len(moments)), len(points))
        call = SolverCall("scored", {"points": points, "times": moments}, {}, {"values": shape})
        code = with_tools(self.code, self.tools)
        result = program_sandbox().result(
            code, CallPlan(FUNCTION, (call,)), ResourceLimits(self.wall_s, MEMORY_MB)
        )
        if result.failure is not None:
            raise ProgramFailed(result.failure)
        return np.asarray(result.arrays["values"], dtype=np.float64)


class ProgramArgs(Parameters):
    """A program, and what its author says of the problem: where it is posed, for how long, and for which fields.

    `bounds` holds the ends of each axis of the domain, or of the smallest box around it; `inside` some points of a
    domain that is not a box. `imported` are the built tools that it imports, `built` those that it leaves.
    """

    code: Annotated[str, Field(min_length=1)]
    bounds: Annotated[tuple[Interval, ...], Field(min_length=1, max_length=3)]
    time: Interval | None = None
    fields: Annotated[tuple[Identifier, ...], Field(min_length=1)]
    inside: tuple[tuple[float, ...], ...] = ()
    imported: Mapping[str, str] = Field({})
    built: Mapping[str, str] = Field({})

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


@tool(
    "solver",
    (),
    (SOLUTION,),
    ProgramArgs,
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
def run_program(call: ToolContext) -> ToolResult:
    """Runs a program in a sandbox and takes what it returns for the solution."""
    written: ProgramArgs = call.parameters
    program = GeneratedSolution(
        written.code, len(written.fields), written.time is None, call.wall_s, written.imported
    )
    began = time.perf_counter()
    values = program.evaluate(written.points, written.moments)
    if failure := _not_finite(written, values):
        raise ProgramFailed(failure)
    attempt = ResolutionAttempt(METHOD, 0, time.perf_counter() - began, 0)
    solution = DiscreteSolution(METHOD, 0, program.evaluate, 0)
    # The error is not known: a program says nothing of its own.
    found = RefinementStudy(METHOD, (attempt,), solution, math.inf, None, converged=False)
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


def prompt_for(statement: str, library: Library | None = None, failed: ToolRecord | None = None) -> str:
    """Return what asks for a program, or for another one where the last has failed.

    With a library, even an empty one, it may import tools and leave some.
    """
    values = {
        "statement": statement,
        "allowed": ", ".join(ALLOWED),
        "builds": library is not None,
        "tools": [signature(name, source) for name, source in (library or {}).items()],
    }
    if failed is None:
        return render("agent/program", **values)
    code = failed.recipe.parameters["code"].rstrip()
    return render("agent/program_retry", **values, code=code, error=failed.error)


def parse_program(text: str, library: Library | None = None) -> WrittenProgram:
    """Return the parameters of `run_program` by an answer: its Python block, and the keys of its JSON object.

    An object that asks the user or refuses needs no program. `library` is that of `prompt_for`.

    Raises `ReplyError` listing what is wrong. A syntax error is none of that: it is the program's.
    """
    stated = extract_json(text)
    if declined := read_declined(stated):
        return declined
    code, named = extract_code(text, FUNCTION), texts_of(stated.pop(MODULE, None))
    told = {name: value for name, value in stated.items() if name not in ("code", "imported", "built")}
    tools = {} if library is None else _tools_of(code, named, library)
    try:
        written = run_program.checked({**told, **tools, "code": code})
    except ToolError as error:
        raise ReplyError(str(error)) from None
    return WrittenProgram(written.model_dump(mode="json", exclude_defaults=True))


def _tools_of(code: str, named: tuple[str, ...], library: Library) -> dict[str, Library]:
    """Return the tools that a program imports and builds; raises `ReplyError` for one that there is not."""
    names = tools_imported(code, library)
    if unknown := [name for name in names if name not in library]:
        raise ReplyError(f"unknown tool '{unknown[0]}'; {valid_values('tools', unknown[0], library)}")
    imported = {name: library[name] for name in names}
    return {"imported": imported, "built": tools_built(code, named, imported)}
