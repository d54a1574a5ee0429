"""The tools that set a problem up: typed pieces, put together and checked like a specification that was written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sharp.agent.plans import check_plan, read_plan
from sharp.agent.toolkit import standard_toolkit
from sharp.agent.toolkit.problem_tools import TOOLS
from sharp.agent.tools import ToolContext, ToolError, ToolResult, toolkit_of
from sharp.problems import Problem
from sharp.problems.spec import Specification
from sharp.solvers import all_methods

TOOLKIT = toolkit_of(*TOOLS)
ROD: dict[str, Any] = {
    "coordinates": {"space": ["x"], "time": "t"},
    "fields": ["u"],
    "parameters": {"k": {"value": 237, "unit": "W/(m*K)"}, "rho": 2700, "c": 900, "alpha": "k/(rho*c)"},
    "equations": ["u_t = alpha*u_xx"],
}
LEFT = {"type": "dirichlet", "where": "x = 0", "field": "u", "value": "20"}
RIGHT = {"type": "robin", "where": "x = 0.5", "field": "u", "a": "1", "b": "k", "value": "20"}


def use(name: str, parameters: Mapping[str, Any], **inputs: Any) -> ToolResult:
    tool = TOOLKIT[name]
    given = {port.name: inputs.get(port.name, [] if port.many else None) for port in tool.inputs}
    # Agents' literals travel as JSON through the journal, without what they left out.
    plain = tool.checked(parameters).model_dump(mode="json", exclude_defaults=True)
    return tool.run(ToolContext(tool.checked(plain), given, 1.0))


def pieces(**changes: Any) -> dict[str, Any]:
    boundary = [
        use("define_boundary_condition", condition).outputs["boundary"] for condition in (LEFT, RIGHT)
    ]
    domain = {"domain": {"type": "box", "bounds": {"x": [0, 0.5]}}, "time": [0, 300]}
    found = {
        "equations": use("define_equations", ROD).outputs["equations"],
        "domain": use("define_domain", domain).outputs["domain"],
        "initial": [use("define_initial_condition", {"field": "u", "value": 20}).outputs["initial"]],
        "boundary": boundary,
    }
    return {**found, **changes}


def test_pieces_become_a_checked_problem() -> None:
    outcome = use("assemble_problem", {"title": "A rod"}, **pieces())
    problem = outcome.outputs["problem"]
    assert isinstance(problem, Problem)
    assert problem.parameters["alpha"] == 237 / (2700 * 900)
    assert [condition.type for condition in problem.specification.boundary] == ["dirichlet", "robin"]
    assert "boundary: (1)*u + (k)*du/dn = 20 at x = 0.5" in outcome.summary["as parsed"]


def test_an_exact_solution_and_a_mean_are_taken_up() -> None:
    reference = use("define_reference_solution", {"value": {"u": "20"}}).outputs["reference"]
    problem = use("assemble_problem", {}, **pieces(reference=reference)).outputs["problem"]
    assert problem.specification.reference.value == {"u": "20"}
    mean = use("define_mean", {"field": "u", "value": "t"}).outputs["mean"]
    assert use("assemble_problem", {}, **pieces(mean=[mean])).outputs["problem"].specification.mean == {
        "u": "t"
    }


def test_what_does_not_fit_is_told_by_its_place_in_the_specification() -> None:
    with pytest.raises(ToolError) as caught:
        use("assemble_problem", {}, **pieces(boundary=pieces()["boundary"][:1]))
    said = "assemble_problem: [clarify: missing-boundary-condition] boundary: 'u' has derivatives of order 2 along x"
    assert str(caught.value).startswith(said)
    assert str(caught.value).endswith("?)")


def test_a_value_that_is_given_twice_is_an_error() -> None:
    start = pieces()["initial"]
    with pytest.raises(ToolError, match="initial: 'u' is given twice"):
        use("assemble_problem", {}, **pieces(initial=[*start, *start]))


def test_a_condition_with_the_keys_of_another_type_is_refused_at_once() -> None:
    with pytest.raises(ToolError, match="a dirichlet condition has the keys type, where, field, value"):
        use("define_boundary_condition", {"type": "dirichlet", "axis": "x"})


PULSE = {
    "coordinates": {"space": ["x"], "time": "t"},
    "fields": ["v", "w"],
    "parameters": {"eps": "0.08"},
    "definitions": {"cubic": "v - v**3/3 - w"},
    "equations": ["v_t = v_xx + cubic", "w_t = eps*v"],
}
CABLE = {"domain": {"type": "box", "bounds": {"x": ["0", "60"]}}, "time": ["0", "40"]}
HEAT = {
    "coordinates": {"space": ["x"], "time": "t"},
    "fields": ["u"],
    "units": {"x": "m", "t": "s", "u": "K"},
    "equations": ["u_t = k*u_xx"],
}
SET = {"define_equations": PULSE, "define_domain": CABLE}


@pytest.mark.parametrize(
    ("tool", "given", "says"),
    [
        (
            "define_equations",
            {**PULSE, "parameters": {"D": "1", "eps": "0.08"}},
            "parameters.D: 'D' is a word of",
        ),
        ("define_equations", {**PULSE, "parameters": {}}, "equations[1]: column"),
        ("define_equations", {**PULSE, "definitions": {"cubic": "v - v^"}}, "definitions.cubic: column"),
        ("define_equations", {**HEAT, "parameters": {"k": {"value": 1, "unit": "m/s"}}}, "equations[0]: "),
        (
            "define_equations",
            {**HEAT, "parameters": {"k": {"value": 1, "unit": "furl"}}},
            "parameters.k.unit: ",
        ),
        (
            "define_domain",
            {"domain": CABLE["domain"]},
            "time: expected a value, as the problem depends on the time t",
        ),
        (
            "define_domain",
            {"domain": {"type": "box", "bounds": {"y": ["0", "1"]}}, "time": ["0", "40"]},
            "domain.bounds.y: 'y' is not",
        ),
        ("define_initial_condition", {"field": "u", "value": "0"}, "initial.u: "),
        ("define_initial_condition", {"field": "v", "value": "sin(k*x)"}, "unknown name 'k'"),
        (
            "define_boundary_condition",
            {"type": "neumann", "field": "v", "where": "right", "value": "0"},
            "boundary[0].where: expected one of the places all, x = 0, x = 60; found 'right'",
        ),
        (
            "define_boundary_condition",
            {"type": "neumann", "field": "w", "where": "x = 0", "value": "0"},
            "expected no condition for 'w' at x = 0",
        ),
        ("define_boundary_condition", {"type": "periodic", "axis": "y"}, "'y' is not a space coordinate"),
        ("define_mean", {"field": "u", "value": "0"}, "mean.u: 'u' is not a field"),
        (
            "define_reference_solution",
            {"value": {"v": "0"}},
            "reference.value: expected an entry for each of v, w",
        ),
        ("define_outputs", {"points": {"y": 240}}, "outputs.points.y: "),
        ("define_quantity", {"name": "tip", "value": "u", "at": {"x": "0", "t": "1"}}, "quantities.tip"),
    ],
)
def test_what_contradicts_equations_and_domain_is_told_where_it_is_given(
    tool: str, given: dict[str, Any], says: str
) -> None:
    others = {name: checked(name, known) for name, known in SET.items() if name != tool}
    assert says in TOOLKIT[tool].fits(checked(tool, given), others)


def checked(tool: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return literals as they are kept."""
    return TOOLKIT[tool].checked(given).model_dump(mode="json", exclude_defaults=True)


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("define_equations", PULSE),
        ("define_domain", CABLE),
        ("define_initial_condition", {"field": "v", "value": "exp(-x**2)"}),
        ("define_boundary_condition", {"type": "neumann", "field": "v", "where": "x = 60", "value": "0"}),
        ("define_reference_solution", {"value": {"v": "0", "w": "0"}}),
        ("define_outputs", {"grid": "cells", "points": {"x": 240}, "times": 41}),
        ("define_quantity", {"name": "tip", "value": "v", "at": {"x": "0", "t": "1"}}),
    ],
)
def test_what_fits_is_taken_though_other_pieces_lack(tool: str, given: dict[str, Any]) -> None:
    others = {name: checked(name, known) for name, known in SET.items() if name != tool}
    assert TOOLKIT[tool].fits(checked(tool, given), others) == ""
    assert TOOLKIT[tool].fits(checked(tool, given), {}) == ""


def test_a_question_that_the_statement_may_answer_goes_with_what_lacks() -> None:
    said = TOOLKIT["define_domain"].fits({"domain": CABLE["domain"]}, SET)
    assert "From when to when is the solution wanted" in said
    assert said.endswith("If the statement does not say it, ask the user.)")


def test_every_part_of_a_specification_that_a_user_may_state_has_a_tool() -> None:
    told = {
        "coordinates",
        "fields",
        "parameters",
        "coefficients",
        "units",
        "definitions",
        "equations",
        "eigenvalue",
    }
    told |= {"domain", "time", "initial", "boundary", "mean", "reference", "outputs", "quantities"}
    told |= {"title", "accuracy", "allow"}
    fields = {name for tool in TOOLS for name in tool.parameters.model_fields} | {
        "initial",
        "boundary",
        "mean",
    }
    assert told <= fields | {"reference", "outputs", "quantities"}
    # What remains is for programs, catalogues and tests, or follows from the rest.
    rest = {"pde_spec", "id", "family", "statement", "notes", "interface", "data", "limits", "statements"}
    assert set(Specification.model_fields) - told == rest | {"published", "tags", "expected"}


def test_every_example_on_a_card_is_right() -> None:
    for tool in TOOLS:
        assert tool.examples
        for example in tool.examples:
            tool.checked(example)


def test_a_plan_for_a_rod_is_wired_right() -> None:
    steps = [
        {"id": "e", "tool": "define_equations"},
        {"id": "d", "tool": "define_domain"},
        {"id": "i", "tool": "define_initial_condition"},
        *({"id": name, "tool": "define_boundary_condition"} for name in ("left", "right")),
        {
            "id": "p",
            "tool": "assemble_problem",
            "inputs": {
                "equations": "e.equations",
                "domain": "d.domain",
                "initial": ["i.initial"],
                "boundary": ["left.boundary", "right.boundary"],
            },
        },
    ]
    assert check_plan(read_plan(steps), TOOLKIT) == ()


def test_the_card_of_the_choice_names_every_method_that_there_is() -> None:
    limits = standard_toolkit()["choose_method"].limits
    missing = [method.name for method in all_methods() if method.name not in limits.replace(",", " ").split()]
    assert not missing
