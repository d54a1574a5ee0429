"""Plans: references between steps are typed, and all faults are found before anything is run."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sharp.agent.plans import OutputReference, check_plan, read_plan
from sharp.agent.tools import ToolError
from sharp.errors import ReplyError
from tests.helpers.agent.arithmetic_tools import TOOLS

RIGHT: list[dict[str, Any]] = [
    {"id": "a", "tool": "give_number", "why": "the first term"},
    {"id": "b", "tool": "give_number"},
    {"id": "c", "tool": "add", "inputs": {"terms": ["a.number", {"ref": "b.number"}]}},
    {"id": "d", "tool": "square_root", "inputs": {"number": "c.number"}},
]


def faults(plan: list[dict[str, Any]]) -> tuple[str, ...]:
    return check_plan(read_plan(plan), TOOLS)


def changed(number: int, **changes: Any) -> list[dict[str, Any]]:
    return [*RIGHT[:number], {**RIGHT[number], **changes}, *RIGHT[number + 1 :]]


def test_a_right_plan_has_no_faults_and_a_tool_may_be_used_twice() -> None:
    assert faults(RIGHT) == ()
    plan = read_plan(RIGHT)
    assert plan.step("c").references == (OutputReference("a", "number"), OutputReference("b", "number"))
    assert plan.step("a").why == "the first term"


def test_ids_are_given_where_they_are_missing() -> None:
    assert read_plan([{"tool": "give_number"}, {"tool": "give_number"}]).ids == ("s1", "s2")


@pytest.mark.parametrize(
    ("plan", "says"),
    [
        (changed(0, tool="give_numbr"), "step a: unknown tool 'give_numbr'; did you mean 'give_number'?"),
        (changed(1, id="a"), "step a: the id is used twice"),
        (changed(2, inputs={}), "step c, input terms: expected a result of kind number, found none"),
        (
            changed(2, inputs={"terms": None}),
            "step c, input terms: expected a result of kind number, found none",
        ),
        (changed(2, inputs={"terms": ["d.root"]}), "the step d comes later"),
        (changed(2, inputs={"terms": ["z.number"]}), "the step z is not in the plan"),
        (changed(2, inputs={"terms": "a.root"}), "a ('give_number') gives no 'root'; valid results: number"),
        (
            changed(3, inputs={"number": ["a.number", "b.number"]}),
            "input number: expected one result, found 2",
        ),
        (changed(3, inputs={"number": "c.number", "x": "a.number"}), "'square_root' has no input 'x'"),
    ],
)
def test_every_fault_names_the_step_and_what_was_expected(plan: list[dict[str, Any]], says: str) -> None:
    assert any(says in fault for fault in faults(plan)), faults(plan)


def test_kinds_have_to_agree() -> None:
    plan = [*RIGHT, {"id": "e", "tool": "square_root", "inputs": {"number": "d.root"}}]
    assert faults(plan) == ("step e, input number: expected kind number, found root (d.root)",)
    assert faults([*RIGHT, {**plan[-1], "inputs": {"number": "d.check"}}]) == ()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({}, "expected a list of steps"),
        ([], "expected a list of steps"),
        (["add"], "step 1: expected an object with a tool"),
        ([{"tool": "add", "argument": [1]}], "unknown keys argument; valid keys: id, tool, inputs, why"),
        ([{"tool": "add", "inputs": [1]}], "expected inputs as an object of ports"),
        (
            [{"tool": "add", "inputs": {"terms": "the sum of a.number and b.number."}}],
            "expected a result such as",
        ),
    ],
)
def test_what_is_no_plan_is_refused_with_a_sentence_for_the_model(data: Any, says: str) -> None:
    with pytest.raises(ReplyError, match=says):
        read_plan(data)


def test_parameters_are_checked_all_at_once_by_the_schema() -> None:
    tool = TOOLS["give_number"]
    assert tool.checked({"value": 2}).model_dump() == {"value": 2.0}
    with pytest.raises(ToolError) as caught:
        tool.checked({"valeu": 1})
    assert "value: required, and missing" in str(caught.value)
    assert "valeu: unknown; did you mean 'value'?" in str(caught.value)


def test_cards_tell_ports_schema_and_examples() -> None:
    card = TOOLS["add"].card()
    assert card["inputs"] == [
        {"name": "terms", "kind": "number", "about": "what is added", "required": True, "many": True}
    ]
    assert TOOLS["give_number"].card()["parameters"]["properties"]["value"]["type"] == "number"
    assert all(tool.checked(example) for tool in TOOLS.values() for example in tool.examples)
    assert replace(TOOLS["add"], limits="none").card()["limits"] == "none"
