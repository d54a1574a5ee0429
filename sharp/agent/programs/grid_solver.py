"""Solver programs that PDE-SHARP writes: tools that have one written and solve a problem with it, on its grid.

The solution is what the program computes in the sandbox for the times wanted, interpolated between grid points.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from sharp.agent.programs.program_sandbox import program_sandbox
from sharp.agent.synthesis import SolverProgram, SynthesisArgs, SynthesisService
from sharp.agent.toolkit.solver_tools import SOLUTION, SOUND, GridSolution
from sharp.agent.tools import CheckResult, Tool, ToolContext, ToolError, ToolPort, ToolResult, tool
from sharp.evaluation import SCORED, CallPlan, call_of
from sharp.problems import Problem
from sharp.reference import Inputs
from sharp.solvers import (
    Array,
    RefinementStudy,
    ResolutionAttempt,
    axis_points,
    compile_function,
    sample_times,
)

METHOD = "solver program"
SOLVER = ToolPort("solver", "solver program", "the program, with its errors on validation and test data")
_DEGREE = 3
# What may differ between the problem that a program was written for and one that it solves.
_FREE = {"id", "title", "statement", "statements", "notes", "tags", "initial", "reference", "published"}


def synthesis_tools(service: SynthesisService) -> tuple[Tool, ...]:
    """Return the tools for a session that says where programs are written, and by whom."""

    @tool(
        "solver",
        (SOUND,),
        (SOLVER,),
        SynthesisArgs,
        cost="hours",
        limits="For problems that depend on time, on a box, with an expression as initial state: data can be made "
        "for these. It asks models many times: take it where a solver program is asked for, or where other tools "
        "cannot solve the problem. run_solver then solves the problem with the program.",
        examples=({}, {"candidates": 16, "rounds": 4}),
    )
    async def synthesize_solver(call: ToolContext) -> ToolResult:
        """Has models write, judge and refine solver programs for a problem, scores them on data, and gives the best,
        which takes any initial state.
        """
        found = await service.solver(call.inputs["problem"], call.parameters)
        # Paths in prompts are those within the session: the same wherever it is kept.
        file = found.path.relative_to(found.run.parent).as_posix()
        summary = {key: value for key, value in found.to_json().items() if key not in ("path", "report")}
        return ToolResult({"solver": found}, {**summary, "file": file}, (_finding(found),))

    return synthesize_solver, run_solver


def _finding(found: SolverProgram) -> CheckResult:
    accuracy = found.problem.specification.accuracy
    if math.isinf(found.error):
        return CheckResult("error on test data", False, "the program failed on test data", None, accuracy)
    about = f"mean relative error {found.error:.1e} on test data where {accuracy:.0e} was asked for"
    return CheckResult("error on test data", found.error <= accuracy, about, found.error, accuracy)


@tool(
    "solver",
    (SOUND, SOLVER),
    (SOLUTION,),
    cost="minutes",
    limits="The problem is the one that the program was written for, or differs in the initial state alone. Values "
    "between grid points are interpolated: compare_with_reference and cross_check take the solution, check_residual "
    "and check_conditions do not.",
)
def run_solver(call: ToolContext) -> ToolResult:
    """Runs a solver program, in the sandbox, on the initial state of the problem, and gives the solution on its
    grid.
    """
    problem, solver = call.inputs["problem"], call.inputs["solver"]
    _check_fits(problem, solver)
    if problem.time is None:
        raise ToolError(
            "run_solver: the problem does not depend on time, and so states no initial state to start from"
        )
    program, began = GridSolverSolution(problem, solver.code), time.perf_counter()
    values = program.at(program.output_times).values
    points, unknowns = max(problem.grid.points.values()), values[:, 0].size
    attempt = ResolutionAttempt(METHOD, points, time.perf_counter() - began, unknowns)
    solution = GridSolution(METHOD, points, program.evaluate, unknowns)
    agreed = solver.error <= problem.specification.accuracy
    found = RefinementStudy(METHOD, (attempt,), solution, solver.error, None, agreed)
    return ToolResult({"solution": found}, _ranges(problem, values))


def _check_fits(problem: Problem, solver: SolverProgram) -> None:
    """Raise `ToolError` where a program was written for a problem with other equations, conditions or outputs."""
    ours, theirs = (
        each.specification.model_dump(mode="json", exclude=_FREE) for each in (problem, solver.problem)
    )
    other = sorted(key for key in ours if ours[key] != theirs[key])
    if other:
        raise ToolError(
            f"run_solver: the program was written for a problem with other {', '.join(other)}; expected one that "
            "differs in the initial state alone"
        )


def _ranges(problem: Problem, values: Array) -> dict[str, Any]:
    """Return what is told of a solution: its grid, and between which values each field lies."""
    return {
        "method": METHOD,
        "grid": dict(problem.grid.points),
        "output times": problem.grid.times,
        "ranges": {
            name: [float(f"{end:.3g}") for end in (found.min(), found.max())]
            for name, found in zip(problem.fields, values, strict=True)
        },
    }


@dataclass(frozen=True)
class GridSolverSolution:
    """A program of the problem's interface, run on the stated initial state under the problem's limits.

    It is run anew for other times and what it returned is remembered, as checks ask for the same more than once.
    """

    problem: Problem
    code: str
    _known: dict[bytes, Interpolant] = field(default_factory=dict, compare=False, repr=False)

    def evaluate(self, points: Array, times: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k], by cubic splines between grid points.

        The program is given the output times of the problem together with those asked for, so that no step between
        two of them is longer than where it was scored. Raises `ToolError` where it fails or returns what is not
        finite, and `InfrastructureError` where the machine is at fault.
        """
        asked = np.asarray(times, dtype=float)
        all_times = np.union1d(self.output_times, asked)
        return self.at(all_times)(points)[:, np.searchsorted(all_times, asked)]

    def at(self, times: Array) -> Interpolant:
        """Return the values at ascending times [k], the first the initial one, with what interpolates them."""
        key = times.tobytes()
        if key not in self._known:
            self._known[key] = Interpolant.of(self.problem, self._values(times))
        return self._known[key]

    @property
    def output_times(self) -> Array:
        """The times [T] at which the problem wants its solution."""
        return sample_times(self.problem, np.linspace(0, 1, self.problem.grid.times or 1))

    def _values(self, times: Array) -> Array:
        """Return the values [fields, k, points along each axis]."""
        problem = self.problem
        arrays = {port.name: self._input(port.field)[None] for port in problem.interface.inputs}
        inputs = Inputs(arrays, times, axes_of(problem)[0])
        work = CallPlan(problem.interface.function, (call_of(SCORED, problem, inputs),))
        result = program_sandbox().result(self.code, work, problem.limits)
        if result.failure is not None:
            raise ToolError(f"run_solver: {result.failure.message}\n{result.failure.traceback}".strip())
        returned = {port.field: result.arrays[port.name][0] for port in problem.interface.returns}
        values = np.stack([np.asarray(returned[name], dtype=float) for name in problem.fields])
        if not np.all(np.isfinite(values)):
            raise ToolError(f"run_solver: {np.sum(~np.isfinite(values))} values are NaN or infinite")
        return values

    def _input(self, name: str) -> Array:
        """Return an initial state or a coefficient on the grid."""
        spec = self.problem.specification
        stated = (spec.initial.get(name) or spec.coefficients[name]).expression
        if stated is None:
            raise ToolError(
                f"run_solver: expected an expression for '{name}', found a family of random functions: "
                "there is no stated problem to solve, only the solver"
            )
        grids = np.meshgrid(*axes_of(self.problem), indexing="ij")
        points = np.stack([grid.ravel() for grid in grids], axis=1)
        values = compile_function(self.problem, stated)(points, sample_times(self.problem, [0.0]))[0]
        return np.asarray(values.reshape(grids[0].shape))


@dataclass(frozen=True)
class Interpolant:
    """Values [fields, k, points along each axis], and the tensor products of cubic splines through them.

    `wraps` holds start and length of each periodic axis, None for others.
    """

    values: Array
    spline: Any
    wraps: tuple[tuple[float, float] | None, ...]

    @classmethod
    def of(cls, problem: Problem, values: Array) -> Interpolant:
        """Return the interpolant of values."""
        from scipy.interpolate import NdBSpline, make_interp_spline

        coefficients = np.moveaxis(values, (0, 1), (-2, -1))
        knots, wraps = [], []
        for number, (nodes, length) in enumerate(_axes(problem)):
            if length is not None:
                nodes, coefficients = _closed(nodes, length, coefficients, number)
            kind: Literal["periodic"] | None = None if length is None else "periodic"
            spline = make_interp_spline(nodes, coefficients, _DEGREE, bc_type=kind, axis=number)
            coefficients = np.moveaxis(spline.c, 0, number)
            knots.append(spline.t)
            wraps.append(None if length is None else (float(nodes[0]), length))
        return cls(values, NdBSpline(tuple(knots), coefficients, _DEGREE), tuple(wraps))

    def __call__(self, points: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d]."""
        columns = [
            column if wrap is None else wrap[0] + (column - wrap[0]) % wrap[1]
            for column, wrap in zip(points.T, self.wraps, strict=True)
        ]
        return np.asarray(np.moveaxis(self.spline(np.stack(columns, axis=1)), 0, -1))


def axes_of(problem: Problem) -> list[Array]:
    """Return the grid points along each axis."""
    return [axis_points(problem, axis, problem.grid.points[axis]) for axis in problem.space]


def _axes(problem: Problem) -> Iterator[tuple[Array, float | None]]:
    """Yield the grid points along each axis, and its length where it is periodic."""
    periodic = {
        condition.axis for condition in problem.specification.boundary if condition.type == "periodic"
    }
    for axis, nodes in zip(problem.space, axes_of(problem), strict=True):
        low, high = problem.bounds[axis]
        yield nodes, high - low if axis in periodic else None


def _closed(nodes: Array, length: float, values: Array, axis: int) -> tuple[Array, Array]:
    """Return one whole period: the first value once more at its end, in place of what a grid with both ends has."""
    inside = nodes < nodes[0] + length * (1 - 1e-9)
    values = np.compress(inside, values, axis)
    return np.append(nodes[inside], nodes[0] + length), np.append(values, np.take(values, [0], axis), axis)
