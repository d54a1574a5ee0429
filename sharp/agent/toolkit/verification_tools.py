"""Tools that check a solution, independently of the method that gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sharp.agent.toolkit.solver_tools import SOLUTION, SOUND, GridSolution, NoArgs
from sharp.agent.tools import CheckResult, Tool, ToolContext, ToolError, ToolPort, ToolResult
from sharp.problems.problem import Problem
from sharp.solvers import verification
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.method import Deadline
from sharp.solvers.refine import RefinementStudy
from sharp.solvers.verification import CheckTolerances, VerificationCheck

Checks = Callable[[Problem, DiscreteSolution, CheckTolerances], Iterator[VerificationCheck]]

CHECK = ToolPort("check", "check", "what was measured, beside its limits")


def _limits(call: ToolContext) -> CheckTolerances:
    from sharp.solvers.system import system_of

    problem = call.inputs["problem"]
    return verification.limits_of(system_of(problem), problem.specification.accuracy)


def _checked(call: ToolContext, checks: Checks) -> ToolResult:
    solution = _solution(call)
    return _outcome(list(checks(call.inputs["problem"], solution, _limits(call))))


def _solution(call: ToolContext) -> DiscreteSolution:
    found: RefinementStudy = call.inputs["solution"]
    assert found.solution is not None, "solving tools give no refinement without a solution"
    return found.solution


def _outcome(checks: list[VerificationCheck]) -> ToolResult:
    summary = {
        check.name: f"{check.value:.1e} (limit {check.limit:.0e}, {check.verdict})" for check in checks
    }
    return ToolResult({"check": tuple(checks)}, summary, tuple(map(_finding, checks)))


def _finding(check: VerificationCheck) -> CheckResult:
    about = f"{check.name}: {check.value:.1e} where {check.limit:.0e} is allowed"
    note = f" ({check.note})" if check.note else ""
    return CheckResult(check.name, check.verdict == "verified", about + note, check.value, check.limit)


def _residual(call: ToolContext) -> ToolResult:
    _refuse_grid(
        call, "check_residual", "differences of what is interpolated would measure the interpolation"
    )
    return _checked(call, verification.equation_checks)


def _conditions(call: ToolContext) -> ToolResult:
    _refuse_grid(
        call,
        "check_conditions",
        "the program was given its initial state, and what is interpolated keeps periods",
    )
    return _checked(call, verification.condition_checks)


def _refuse_grid(call: ToolContext, tool: str, reason: str) -> None:
    if isinstance(_solution(call), GridSolution):
        raise ToolError(
            f"{tool}: the solution is known on a grid only, and {reason}; expected cross_check or "
            "compare_with_reference"
        )


def _exact(call: ToolContext) -> ToolResult:
    if call.inputs["problem"].specification.reference.kind != "exact":
        raise ToolError(
            "compare_with_reference: the problem has no exact solution; expected define_reference_solution"
        )
    return _checked(call, verification.exact_checks)


def _second(call: ToolContext) -> ToolResult:
    from sharp.solvers.cross_check import cross_check
    from sharp.solvers.method import all_methods
    from sharp.solvers.recommend import recommend
    from sharp.solvers.system import system_of

    problem = call.inputs["problem"]
    found: RefinementStudy = call.inputs["solution"]
    system, limits = system_of(problem), _limits(call)
    others = [
        recommended.method
        for recommended in recommend(system, all_methods()).recommendations
        if recommended.method.name != found.method
    ]
    opinion = cross_check(
        system,
        others,
        _solution(call),
        found.seconds,
        limits.accuracy,
        Deadline.within(call.wall_s),
        lambda _: None,
    )
    return _outcome(list(verification.cross_check_result(opinion, limits)))


def _tool(name: str, about: str, run: object, limits: str = "") -> Tool:
    assert callable(run), "a tool runs"
    return Tool(name, "solver", about, NoArgs, (SOUND, SOLUTION), (CHECK,), run, "seconds", limits, ({},))


TOOLS: tuple[Tool, ...] = (
    _tool(
        "check_residual",
        "Measures how well the solution satisfies its equations, by finite differences.",
        _residual,
    ),
    _tool("check_conditions", "Measures how well initial, boundary and mean values are met.", _conditions),
    _tool(
        "cross_check",
        "Compares with the solution of another method.",
        _second,
        "Only where a second one is cheap.",
    ),
    _tool("compare_with_reference", "Compares with the exact solution.", _exact, "Only where one was given."),
)
