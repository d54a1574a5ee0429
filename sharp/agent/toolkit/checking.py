"""Tools that check a solution, independently of the method that gave it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sharp.agent.toolkit.solving import SOLUTION, SOUND, GridSolution, Nothing
from sharp.agent.tools import Call, Finding, Outcome, Port, Tool, ToolError
from sharp.problems.problem import Problem
from sharp.solving import verification
from sharp.solving.method import Deadline
from sharp.solving.refine import Refinement
from sharp.solving.solution import Solution
from sharp.solving.verification import Check, Limits

Checks = Callable[[Problem, Solution, Limits], Iterator[Check]]

CHECK = Port("check", "check", "what was measured, beside its limits")


def _limits(call: Call) -> Limits:
    from sharp.solving.system import system_of

    problem = call.inputs["problem"]
    return verification.limits_of(system_of(problem), problem.specification.accuracy)


def _checked(call: Call, checks: Checks) -> Outcome:
    solution = _solution(call)
    return _outcome(list(checks(call.inputs["problem"], solution, _limits(call))))


def _solution(call: Call) -> Solution:
    found: Refinement = call.inputs["solution"]
    assert found.solution is not None, "solving tools give no refinement without a solution"
    return found.solution


def _outcome(checks: list[Check]) -> Outcome:
    summary = {
        check.name: f"{check.value:.1e} (limit {check.limit:.0e}, {check.verdict})" for check in checks
    }
    return Outcome({"check": tuple(checks)}, summary, tuple(map(_finding, checks)))


def _finding(check: Check) -> Finding:
    about = f"{check.name}: {check.value:.1e} where {check.limit:.0e} is allowed"
    note = f" ({check.note})" if check.note else ""
    return Finding(check.name, check.verdict == "verified", about + note, check.value, check.limit)


def _residual(call: Call) -> Outcome:
    _refuse_grid(
        call, "check_residual", "differences of what is interpolated would measure the interpolation"
    )
    return _checked(call, verification.equation_checks)


def _conditions(call: Call) -> Outcome:
    _refuse_grid(
        call,
        "check_conditions",
        "the program was given its initial state, and what is interpolated keeps periods",
    )
    return _checked(call, verification.condition_checks)


def _refuse_grid(call: Call, tool: str, reason: str) -> None:
    if isinstance(_solution(call), GridSolution):
        raise ToolError(
            f"{tool}: the solution is known on a grid only, and {reason}; expected cross_check or "
            "compare_with_reference"
        )


def _exact(call: Call) -> Outcome:
    if call.inputs["problem"].specification.reference.kind != "exact":
        raise ToolError(
            "compare_with_reference: the problem has no exact solution; expected define_reference_solution"
        )
    return _checked(call, verification.exact_checks)


def _second(call: Call) -> Outcome:
    from sharp.solving.methods import all_methods
    from sharp.solving.recommend import recommend
    from sharp.solving.second import second_opinion
    from sharp.solving.system import system_of

    problem = call.inputs["problem"]
    found: Refinement = call.inputs["solution"]
    system, limits = system_of(problem), _limits(call)
    others = [
        recommended.method
        for recommended in recommend(system, all_methods()).recommendations
        if recommended.method.name != found.method
    ]
    opinion = second_opinion(
        system,
        others,
        _solution(call),
        found.seconds,
        limits.accuracy,
        Deadline.within(call.wall_s),
        lambda _: None,
    )
    return _outcome(list(verification.with_opinion(opinion, limits)))


def _tool(name: str, about: str, run: object, limits: str = "") -> Tool:
    assert callable(run), "a tool runs"
    return Tool(name, "solver", about, Nothing, (SOUND, SOLUTION), (CHECK,), run, "seconds", limits, ({},))


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
