"""Tools that check a problem, choose a method, discretise and solve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from sharp.agent.toolkit.problem_tools import PROBLEM, objections
from sharp.agent.tools import (
    CheckResult,
    Parameters,
    ToolContext,
    ToolError,
    ToolPort,
    ToolResult,
    tool,
)
from sharp.errors import ConfigurationError, SpecificationError
from sharp.problems import Problem
from sharp.solvers import Deadline, DiscreteSolution, FirstOrderSystem, NumericalMethod, RefinementStudy
from sharp.solvers.refine import refine


class MethodArgs(Parameters):
    """A method by name; without one the first that is recommended is taken."""

    method: str | None = None


class ResolutionArgs(Parameters):
    """Nodes, cells or modes along an axis; without it, resolutions rise until two solutions agree."""

    resolution: Annotated[int, Field(ge=4, le=5000)] | None = None


class GridSolution(DiscreteSolution):
    """A solution whose values come from a grid; between its points they are interpolated."""


@dataclass(frozen=True)
class DiscretisedProblem:
    """A system with the method that solves it, at these resolutions in turn, to a relative accuracy."""

    system: FirstOrderSystem
    method: NumericalMethod
    resolutions: tuple[int, ...]
    accuracy: float


SOUND = ToolPort("problem", "validated_problem", "the problem after check_problem")
SOLUTION = ToolPort("solution", "solution", "the solution, with how it was refined")
_VALIDATED = ToolPort(
    "validated_problem", "validated_problem", "the problem, if nothing speaks against solving it"
)
_METHOD = ToolPort("method", "method", "the method of solution")
_DISCRETISATION = ToolPort("discretisation", "discretisation", "system, method and resolutions")


@tool("parser", (PROBLEM,), (_VALIDATED,))
def check_problem(call: ToolContext) -> ToolResult:
    """Looks for what makes a problem ill-posed, under-specified or contradictory."""
    from sharp.problems import check_well_posedness

    found = check_well_posedness(call.inputs["problem"])
    grave = [concern for concern in found if concern.verdict != "warn"]
    if grave:
        raise ToolError(f"check_problem: {objections(grave)}")
    finding = CheckResult("well-posed", True, "conditions fit the equations, and nothing contradicts")
    warnings = [concern.message for concern in found]
    return ToolResult({"validated_problem": call.inputs["problem"]}, {"warnings": warnings}, (finding,))


@tool(
    "solver",
    (SOUND,),
    (_METHOD,),
    MethodArgs,
    limits="Methods are characteristics, chebyshev, etd, fd, fem, fem-cubic, fourier, fv, imex, muscl, polar, rbf and "
    "pinn (a network, taken by itself where no other can); each says why it cannot solve a problem.",
    examples=({}, {"method": "fd"}),
)
def choose_method(call: ToolContext) -> ToolResult:
    """Chooses a method by rules from dimension, domain, order, type and smoothness."""
    from sharp.solvers import all_methods
    from sharp.solvers.recommend import recommend

    system = _system(call.inputs["problem"], "choose_method")
    try:
        choice = recommend(system, all_methods(), call.parameters.method)
    except ConfigurationError as error:
        raise ToolError(f"choose_method: {error}") from None
    if not choice.recommendations:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in choice.refusals.items())
        raise ToolError(f"choose_method: no method can solve this problem: {reasons}")
    first = choice.recommendations[0]
    summary = {
        "method": first.method.name,
        "because": first.reason,
        "others": [other.method.name for other in choice.recommendations[1:]],
        "not": dict(choice.refusals),
    }
    return ToolResult({"method": first.method}, summary)


@tool("solver", (SOUND, _METHOD), (_DISCRETISATION,), ResolutionArgs, examples=({}, {"resolution": 60}))
def discretise(call: ToolContext) -> ToolResult:
    """Puts the problem on grids of rising resolution, or on those about a given one."""
    problem: Problem = call.inputs["problem"]
    method: NumericalMethod = call.inputs["method"]
    system = _system(problem, "discretise")
    asked = call.parameters.resolution
    # One resolution alone would leave its error unknown.
    resolutions = (max(4, 2 * asked // 3), asked) if asked else tuple(method.resolution_sequence(system))
    found = DiscretisedProblem(system, method, resolutions, problem.specification.accuracy)
    summary = {
        "method": method.name,
        "resolutions": list(resolutions),
        "unknown functions": len(system.components),
        "linear": system.linear,
    }
    return ToolResult({"discretisation": found}, summary)


def _system(problem: Problem, name: str) -> FirstOrderSystem:
    from sharp.solvers import system_of

    try:
        return system_of(problem)
    except SpecificationError as error:
        raise ToolError(f"{name}: {error}") from None


@tool("solver", (_DISCRETISATION,), (SOLUTION,), cost="seconds")
def solve_in_time(call: ToolContext) -> ToolResult:
    """Solves a problem that depends on time."""
    system = call.inputs["discretisation"].system
    if system.steady:
        other = "solve_eigenvalues" if system.eigenvalue_terms else "solve_steady"
        raise ToolError(f"solve_in_time: the problem does not depend on time; expected {other}")
    return _solved(call, "solve_in_time")


@tool("solver", (_DISCRETISATION,), (SOLUTION,), cost="seconds")
def solve_steady(call: ToolContext) -> ToolResult:
    """Solves a steady problem."""
    system = call.inputs["discretisation"].system
    if not system.steady or system.eigenvalue_terms:
        other = "solve_eigenvalues" if system.eigenvalue_terms else "solve_in_time"
        raise ToolError(f"solve_steady: expected {other} for this problem")
    return _solved(call, "solve_steady")


@tool("solver", (_DISCRETISATION,), (SOLUTION,), cost="seconds")
def solve_eigenvalues(call: ToolContext) -> ToolResult:
    """Finds the lowest eigenvalues and the first eigenfunction."""
    system = call.inputs["discretisation"].system
    if not system.eigenvalue_terms:
        other = "solve_steady" if system.steady else "solve_in_time"
        raise ToolError(f"solve_eigenvalues: no eigenvalue was declared; expected {other}")
    return _solved(call, "solve_eigenvalues")


def _solved(call: ToolContext, name: str) -> ToolResult:
    asked: DiscretisedProblem = call.inputs["discretisation"]
    limit = Deadline.within(call.wall_s)
    found = refine(asked.method, asked.system, asked.accuracy, limit, asked.resolutions)
    if found.solution is None:
        failures = "; ".join(
            f"at resolution {attempt.resolution}: {attempt.failure}" for attempt in found.attempts
        )
        raise ToolError(f"{name}: {asked.method.name} found no solution: {failures}")
    finding = CheckResult(
        "refinement",
        found.converged,
        f"estimated relative error {found.error:.1e} where {asked.accuracy:.0e} was asked for",
        found.error,
        asked.accuracy,
    )
    return ToolResult({"solution": found}, _told(found), (finding,))


def _told(found: RefinementStudy) -> dict[str, Any]:
    solution = found.solution
    assert solution is not None, "there is a solution to tell of"
    told: dict[str, Any] = {
        "method": solution.method,
        "resolutions": [attempt.resolution for attempt in found.attempts],
        "unknowns": solution.unknowns,
        "estimated error": float(f"{found.error:.2g}"),
    }
    if solution.eigenvalues:
        told["eigenvalues"] = [float(f"{value:.10g}") for value in solution.eigenvalues]
    return told


TOOLS = (check_problem, choose_method, discretise, solve_in_time, solve_steady, solve_eigenvalues)
