"""Numbers that are asked for in words, in three languages; what cannot be read whole is not read."""

from __future__ import annotations

from typing import Any

import pytest

from sharp.problems import load_case, load_ill_posed
from sharp.rule_based.agents import known_case
from sharp.rule_based.asked import quantity_of

ROD = {
    "coordinates": {"space": ["x"], "time": "t"},
    "fields": ["u"],
    "units": {"x": "m", "t": "s", "u": "degC"},
    "domain": {"type": "box", "bounds": {"x": ["0", "L"]}},
    "time": ["0", "7200"],
}


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        (
            "What is the temperature of the outer face after an hour, in degrees Celsius?",
            {"value": "u", "at": {"x": "L", "t": "3600"}, "unit": "degC"},
        ),
        ("What is u at x = 0.25 and t = 10?", {"value": "u", "at": {"x": "0.25", "t": "10"}}),
        ("How hot is the middle at the end?", {"value": "u", "at": {"x": "((0) + (L))/2", "t": "7200"}}),
        ("What is the highest temperature?", {"value": "u", "take": "maximum"}),
        (
            "Wie groß ist die mittlere Temperatur nach 10 Minuten, in Kelvin?",
            {"value": "u", "take": "mean", "at": {"t": "600"}, "unit": "K"},
        ),
        (
            "一小时后中点的温度是多少摄氏度？",
            {"value": "u", "at": {"x": "((0) + (L))/2", "t": "3600"}, "unit": "degC"},
        ),
        ("How does the temperature develop?", None),
        ("What is the temperature after an hour?", None),
        ("What is the humidity at x = 0.1 and t = 1?", None),
    ],
)
def test_common_phrasings(sentence: str, asked: dict[str, Any] | None) -> None:
    assert quantity_of(sentence, ROD) == asked


def test_questions_after_a_known_statement_are_part_of_its_plan() -> None:
    statement = load_case("heat-rod-two-ends").statements[0].text
    known = known_case(
        f"{statement} What is the highest temperature? How hot is the middle after 10 minutes?"
    )
    asked = [
        known.chain.parameters[step.id] for step in known.chain.plan.steps if step.tool == "define_quantity"
    ]
    assert [each.get("take") for each in asked] == ["maximum", None]


def test_a_jump_that_is_meant_is_accepted() -> None:
    statement = load_ill_posed("quenched-plate").statements[0].text
    answered = known_case(f"{statement}\n\nAsked and answered:\n- Is a jump meant? a jump is meant")
    (assembled,) = (step.id for step in answered.chain.plan.steps if step.tool == "assemble_problem")
    assert answered.chain.parameters[assembled]["allow"] == ["corner-jump"]
