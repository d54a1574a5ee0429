"""Tools that check a solution, independently of the method that gave it."""

from __future__ import annotations

from collections.abc import Collection

from sharp.agent.toolkit.solving import SOLUTION, SOUND, Nothing
from sharp.agent.tools import Call, Finding, Outcome, Port, Tool, ToolError
from sharp.solving import verification
from sharp.solving.method import Deadline
from sharp.solving.refine import Refinement
from sharp.solving.verification import Check, Limits

CHECK = Port("check", "check", "what was measured, beside its limits")


def _limits(call: Call) -> Limits:
    from sharp.solving.system import system_of

    problem = call.inputs["problem"]
    return verification.limits_of(system_of(problem), problem.specification.accuracy)


def _verified(call: Call, names: Collection[str]) -> Outcome:
    found = verification.verify(call.inputs["problem"], call.inputs["solution"], _limits(call))
    return _outcome([check for check in found if check.name in names])


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
    return _verified(call, {verification.RESIDUAL, verification.BALANCE})


def _conditions(call: Call) -> Outcome:
    return _verified(
        call, {verification.INITIAL, verification.BOUNDARY, verification.FLUX, verification.MEAN}
    )


def _exact(call: Call) -> Outcome:
    if call.inputs["problem"].specification.reference.kind != "exact":
        raise ToolError(
            "compare_with_reference: the problem has no exact solution; expected define_reference_solution"
        )
    return _verified(call, {verification.EXACT, verification.MAXIMUM})


def _second(call: Call) -> Outcome:
    from sharp.solving.methods import METHODS
    from sharp.solving.recommend import recommend
    from sharp.solving.second import second_opinion
    from sharp.solving.system import system_of

    problem = call.inputs["problem"]
    found: Refinement = call.inputs["solution"]
    assert found.solution is not None, "solving tools give no refinement without a solution"
    system, limits = system_of(problem), _limits(call)
    others = [
        recommended.method
        for recommended in recommend(system, [make() for make in METHODS.values()]).recommendations
        if recommended.method.name != found.method
    ]
    opinion = second_opinion(
        system,
        others,
        found.solution,
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
