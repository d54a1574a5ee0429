"""Typed parameter accuracy: what is the same, what is wrong, and what is said of it."""

from __future__ import annotations

from typing import Any

import pytest

from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.metrics.equivalence import Symbols
from sharp.experiments.agent_benchmark.metrics.graphs import ExecutedToolCall, from_steps
from sharp.experiments.agent_benchmark.metrics.parameters import (
    EquationGold,
    ExactGold,
    ExpressionGold,
    Gold,
    ListGold,
    MappingGold,
    chain_accuracy,
    parameter_accuracy,
)

HEAT = Symbols({"alpha": 0.1, "L": 2.0}, {"x": (0, 1), "t": (0, 0.5)}, ("u",), time="t")


def reason(gold: Gold, given: Any) -> str | None:
    found = parameter_accuracy(gold, given, HEAT)
    assert found.total == 1
    return found.wrong[0].reason if found.wrong else None


def test_a_coefficient_ten_times_too_small_is_wrong() -> None:
    found = parameter_accuracy(EquationGold("u_t = 0.1*u_xx"), "u_t = 0.01*u_xx", HEAT)
    assert found.share == 0
    assert str(found.wrong[0]).endswith(
        "is not equivalent: expected u_t = 0.1*u_xx, found a text 'u_t = 0.01*u_xx'"
    )


def test_a_known_parameter_may_be_written_as_its_value() -> None:
    assert reason(EquationGold("u_t = alpha*u_xx"), "D(u, t) - 0.1*lap(u) = 0") is None
    assert reason(ExpressionGold("0.2"), "alpha*L") is None


def test_an_expression_may_be_given_as_a_number() -> None:
    assert reason(ExpressionGold("2*L"), 4) is None
    assert reason(ExpressionGold("2*L"), 4.1) == "is not equivalent"
    assert reason(ExpressionGold("1"), True) == "is not a text"
    assert reason(ExpressionGold("0"), None) == "is not a text"


def test_what_cannot_be_read_is_wrong_and_the_column_is_told() -> None:
    found = reason(ExpressionGold("sin(x)"), "sin(y)")
    assert found is not None
    assert found.startswith("cannot be read (column 5 of 'sin(y)': unknown name 'y'")


def test_a_gold_text_that_cannot_be_read_is_nobodys_mistake_but_ours() -> None:
    with pytest.raises(SpecificationError, match="unknown name 'y'"):
        parameter_accuracy(ExpressionGold("sin(y)"), "sin(x)", HEAT)
    with pytest.raises(SpecificationError, match="too few points"):
        parameter_accuracy(ExpressionGold("sqrt(x - 2)"), "sqrt(x - 2)", HEAT)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (0.5, None),
        (0.5 * (1 + 1e-7), None),
        ("1/2", None),
        (0.51, "is not equivalent"),
        (-0.5, "is not equivalent"),
        (True, "is not a text"),
        ([0.5], "is not a text"),
    ],
)
def test_numbers_are_compared_relatively(given: Any, expected: str | None) -> None:
    assert reason(ExpressionGold("0.5"), given) == expected


def test_choices_are_exact_and_a_truth_value_is_no_number() -> None:
    assert reason(ExactGold("dirichlet"), "dirichlet") is None
    assert reason(ExactGold("dirichlet"), "Dirichlet") == "is another value"
    assert reason(ExactGold(True), 1) == "is another value"
    assert reason(ExactGold(1), True) == "is another value"
    assert reason(ExactGold(None), None) is None


def test_lists_are_compared_item_by_item_and_what_is_missing_or_superfluous_counts() -> None:
    gold = ListGold((ExpressionGold("1"), ExpressionGold("2"), ExpressionGold("3")))
    found = parameter_accuracy(MappingGold({"layers": gold}), {"layers": [1, 5]}, HEAT)
    assert (found.total, found.share) == (3, pytest.approx(1 / 3))
    assert [(wrong.path, wrong.reason) for wrong in found.wrong] == [
        ("layers[1]", "is not equivalent"),
        ("layers[2]", "is missing"),
    ]
    longer = parameter_accuracy(gold, [1, 2, 3, 4], HEAT)
    assert (longer.total, [str(wrong) for wrong in longer.wrong]) == (
        4,
        ["[3]: is superfluous: expected no further item, found a number 4"],
    )
    assert parameter_accuracy(gold, "1, 2, 3", HEAT).share == 0


def boundary(where: str, value: str) -> MappingGold:
    return MappingGold(
        {"where": ExactGold(where), "type": ExactGold("dirichlet"), "value": ExpressionGold(value)}
    )


def test_conditions_may_come_in_any_order() -> None:
    gold = ListGold((boundary("x=0", "20"), boundary("x=1", "100*exp(-t)")), ordered=False)
    given = [
        {"where": "x=1", "type": "dirichlet", "value": "100/exp(t)", "comment": "free"},
        {"where": "x=0", "type": "dirichlet", "value": 20},
    ]
    assert parameter_accuracy(gold, given, HEAT).share == 1
    wrong = parameter_accuracy(gold, [given[0], {**given[1], "type": "neumann"}], HEAT)
    assert (wrong.total, [each.path for each in wrong.wrong]) == (6, ["[1].type"])
    missing = parameter_accuracy(gold, given[:1], HEAT)
    assert (missing.total, missing.share) == (6, 0.5)
    extra = parameter_accuracy(gold, [*given, {"where": "x=2"}], HEAT)
    assert (extra.total, [each.path for each in extra.wrong]) == (7, ["[2]"])


def test_a_list_that_is_empty_as_expected_has_no_parameter_to_be_wrong() -> None:
    assert parameter_accuracy(ListGold((), ordered=False), [], HEAT).share == 1
    assert parameter_accuracy(ListGold((), ordered=False), [1], HEAT).share == 0


STEPS = [
    ExecutedToolCall("a", "define_pde", {"equation": "u_t = u_xx/10"}),
    ExecutedToolCall("b", "define_domain", {"bounds": {"x": [0, 1]}}),
    ExecutedToolCall("c", "define_boundary_condition", {"geometry": {"ref": "b.geometry"}, "value": "1"}),
    ExecutedToolCall("d", "define_boundary_condition", {"geometry": {"ref": "b.geometry"}, "value": "0"}),
    ExecutedToolCall(
        "e", "solve", {"pde": {"ref": "a.pde"}, "conditions": [{"ref": "c.bc"}, {"ref": "d.bc"}]}
    ),
]
INTERVAL = ListGold((ExpressionGold("0"), ExpressionGold("1")))
GOLD_PARAMETERS = {
    "define_pde#1": MappingGold({"equation": EquationGold("u_t = alpha*u_xx")}),
    "define_domain#1": MappingGold(
        {"bounds": MappingGold({"x": ListGold((ExpressionGold("0"), ExpressionGold("1")))})}
    ),
    "define_boundary_condition#1": MappingGold({"value": ExpressionGold("0")}),
    "define_boundary_condition#2": MappingGold({"value": ExpressionGold("1")}),
    "solve#1": MappingGold({}),
}


def test_the_parameters_of_a_chain_are_right_in_whatever_order_its_conditions_were_stated() -> None:
    found = chain_accuracy(GOLD_PARAMETERS, STEPS, from_steps(STEPS), HEAT)
    assert (found.total, found.wrong) == (5, ())


def test_a_step_that_is_missing_has_all_its_parameters_wrong() -> None:
    without = [
        *STEPS[:3],
        ExecutedToolCall("e", "solve", {"pde": {"ref": "a.pde"}, "conditions": [{"ref": "c.bc"}]}),
    ]
    found = chain_accuracy(GOLD_PARAMETERS, without, from_steps(STEPS), HEAT)
    assert found.total == 5
    assert {wrong.path.split(".")[0] for wrong in found.wrong} == {"define_boundary_condition#1"}
    assert {wrong.reason for wrong in found.wrong} == {"is missing"}


def test_an_optional_step_that_was_left_out_has_no_parameters_to_be_right() -> None:
    accepted = from_steps(
        [*STEPS, ExecutedToolCall("f", "plot", {"solution": {"ref": "e.solution"}})], optional={"f"}
    )
    gold = {**GOLD_PARAMETERS, "plot#1": MappingGold({"format": ExactGold("png")})}
    assert chain_accuracy(gold, STEPS, accepted, HEAT).total == 5
    plotted = [*STEPS, ExecutedToolCall("g", "plot", {"solution": {"ref": "e.solution"}, "format": "pdf"})]
    assert [w.path for w in chain_accuracy(gold, plotted, accepted, HEAT).wrong] == ["plot#1.format"]
