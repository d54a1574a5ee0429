"""Prog-Act on a toolkit of numbers, with scripted models: who is asked what, and what is done again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hpc.journal import Journal
from sharp.agent.effects import RecordedEffects, ResultStore
from sharp.agent.prog_act import Checkpoints, SessionOutcome, prog_act
from sharp.agent.team import AgentLimits, AgentTeam, CallsUsedUp, PlanGoal, SamplingParams
from tests.helpers.agent.arithmetic_tools import TOOLS
from tests.helpers.agent.recorded_team import RecordedTeam

STATEMENT = "The root of the sum of seven and nine."
PLAN = {
    "steps": [
        {"id": "a", "tool": "give_number"},
        {"id": "b", "tool": "give_number"},
        {"id": "sum", "tool": "add", "inputs": {"terms": ["a.number", "b.number"]}},
        {"id": "root", "tool": "square_root", "inputs": {"number": ["sum.number"]}},
    ]
}
ROOT = PlanGoal("root", "the root", "solved")
NUMBERS = PlanGoal("number", "the numbers, and nothing more", "specified")
VALID = {"verdict": "valid", "reason": "as stated"}
SOUND = {
    "planner": [PLAN],
    "a": [{"parameters": {"value": 7}}],
    "b": [{"parameters": {"value": 9}}],
    "orchestrator": [VALID],
}


def script(answers: Mapping[str, list[Any]]) -> RecordedTeam:
    """Return a chat backend that gives each agent its answers in turn, and keeps what it was asked."""
    return RecordedTeam({who: list(map(_said, each)) for who, each in answers.items()})


def _said(answer: Any) -> str:
    return answer if isinstance(answer, str) else f"So be it.\n```json\n{json.dumps(answer)}\n```"


def team_of(journal: Journal, team: RecordedTeam, **allowed: int) -> AgentTeam:
    sampling = SamplingParams("scripted")
    effects = RecordedEffects(journal, {"scripted": team}, ResultStore(TOOLS, 1.0))
    roles = {"planner": sampling, "parser": sampling, "solver": sampling, "orchestrator": sampling}
    return AgentTeam(
        STATEMENT,
        TOOLS,
        effects,
        roles,
        AgentLimits(**{"understanding_checks": 1, "format_retries": 1, **allowed}),
    )  # type: ignore[arg-type]


async def play(
    folder: Path,
    answers: Mapping[str, list[Any]],
    checkpoints: Checkpoints = "fixed",
    goal: PlanGoal = ROOT,
    **allowed: int,
) -> tuple[SessionOutcome, RecordedTeam]:
    team = script(answers)
    with Journal.open(folder) as journal:
        return await prog_act(team_of(journal, team, **allowed), checkpoints, goal), team


def root(course: SessionOutcome) -> Any:
    record = course.memory.current("root")
    return record and record.summary.get("root")


async def test_a_sound_course_asks_the_orchestrator_once(tmp_path: Path) -> None:
    course, script = await play(tmp_path, SOUND)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert script.order == ["planner", "a", "b", "orchestrator"]
    assert "complete and without anything invented?" in script.told("orchestrator")[0]
    assert STATEMENT in script.told("a")[0]


async def test_tools_without_literals_need_no_model(tmp_path: Path) -> None:
    _, script = await play(tmp_path, SOUND)
    assert not {"sum", "root"} & set(script.order)


async def test_a_misread_number_is_corrected_where_it_was_read(tmp_path: Path) -> None:
    wrong = {"verdict": "invalid", "reason": "misread", "fixes": [{"step": "a", "advice": "it is seven"}]}
    answers = {
        **SOUND,
        "a": [{"parameters": {"value": 70}}, {"parameters": {"value": 7}}],
        "orchestrator": [wrong, VALID],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert script.order == ["planner", "a", "b", "orchestrator", "a", "orchestrator"]
    assert "it is seven" in script.told("a")[1]
    assert '{"value": 70.0}' in script.told("a")[1]
    assert [record.step for record in course.memory.records] == ["a", "b", "a", "sum", "root"]


async def test_a_failed_tool_leads_to_a_fix_upstream_and_a_rerun_of_what_is_stale(tmp_path: Path) -> None:
    wrong = {"verdict": "invalid", "reason": "sign", "fixes": [{"step": "a", "advice": "positive"}]}
    answers = {
        **SOUND,
        "a": [{"parameters": {"value": -70}}, {"parameters": {"value": 7}}],
        "orchestrator": [VALID, wrong],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert [record.step for record in course.memory.records] == ["a", "b", "sum", "root", "a", "sum", "root"]
    assert "failed: square_root: expected a number of at least 0, found -61" in script.told("orchestrator")[1]


async def test_a_verdict_of_valid_does_not_stand_against_the_numbers(tmp_path: Path) -> None:
    answers = {**SOUND, "a": [{"parameters": {"value": -70}}], "orchestrator": [VALID, VALID, VALID, VALID]}
    course, _ = await play(tmp_path, answers, plans=1)
    assert course.ending == "unsolved"
    assert "expected a number of at least 0" in course.reason


async def test_after_the_turns_are_used_up_a_new_plan_is_made_and_keeps_what_was_done(tmp_path: Path) -> None:
    useless = {"verdict": "invalid", "reason": "still negative", "fixes": [{"step": "a", "advice": "other"}]}
    other = {
        "steps": [
            *PLAN["steps"][:2],
            {"id": "root", "tool": "square_root", "inputs": {"number": ["b.number"]}},
        ]
    }
    answers = {
        "planner": [PLAN, other],
        "a": [{"parameters": {"value": value}} for value in (-70, -71, -72, -73)],
        "b": SOUND["b"],
        "orchestrator": [VALID, useless, useless, useless, VALID],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 3.0)
    assert "It was given up: still negative" in script.told("planner")[1]
    assert script.order.count("b") == 1


async def test_a_plan_that_cannot_be_carried_out_costs_no_tool(tmp_path: Path) -> None:
    faulty = {"steps": [{"id": "root", "tool": "square_root", "inputs": {"number": ["sum.number"]}}]}
    course, script = await play(tmp_path, {**SOUND, "planner": [faulty, PLAN]})
    assert course.ending == "solved"
    assert "the step sum is not in the plan" in script.told("planner")[1]
    assert len(course.memory.records) == 4


async def test_parameters_of_the_wrong_form_are_asked_for_again_with_what_is_wrong(tmp_path: Path) -> None:
    answers = {**SOUND, "a": [{"parameters": {"valu": 7}}, {"parameters": {"value": 7}}]}
    course, script = await play(tmp_path, answers)
    assert course.ending == "solved"
    assert "valu: unknown; did you mean 'value'?" in script.told("a")[1]


async def test_a_question_to_the_user_ends_the_course_with_it(tmp_path: Path) -> None:
    course, script = await play(tmp_path, {**SOUND, "b": [{"ask_user": "Which second number?"}]})
    assert (course.ending, course.questions) == ("needs_clarification", ("Which second number?",))
    assert "orchestrator" not in script.order


async def test_a_cry_for_help_goes_to_the_orchestrator(tmp_path: Path) -> None:
    help_it = {"verdict": "invalid", "reason": "easy", "fixes": [{"step": "a", "advice": "take seven"}]}
    answers = {
        **SOUND,
        "b": [{"need_help": "no number in sight"}, {"parameters": {"value": 9}}],
        "orchestrator": [help_it, VALID],
        "a": [{"parameters": {"value": 7}}, {"parameters": {"value": 7}}],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert "asks for help: no number in sight" in script.told("orchestrator")[0]


async def test_an_answer_to_a_cry_for_help_is_advice_and_no_verdict_on_checks(tmp_path: Path) -> None:
    calm = {"verdict": "valid", "reason": "nine is in the statement"}
    answers = {
        **SOUND,
        "b": [{"need_help": "no number in sight"}, {"parameters": {"value": 9}}],
        "orchestrator": [calm, VALID],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert script.order == ["planner", "a", "b", "orchestrator", "b", "orchestrator"]
    asked = script.told("orchestrator")[0]
    assert "A step needs help: what has to change?" in asked
    assert "The checks say" not in asked
    assert "## What is wrong with it\n\nnine is in the statement" in script.told("b")[1]


async def test_who_cries_for_help_again_and_again_leads_to_another_plan(tmp_path: Path) -> None:
    answers = {
        "planner": [
            PLAN,
            {"steps": [PLAN["steps"][0], {**PLAN["steps"][3], "inputs": {"number": ["a.number"]}}]},
        ],
        "a": [{"parameters": {"value": 9}}],
        "b": [{"need_help": "no number in sight"}] * 3,
        "orchestrator": [{"verdict": "valid", "reason": "look again"}] * 3 + [VALID],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 3.0)
    assert "It was given up: b (give_number) asks for help: no number in sight" in script.told("planner")[1]


async def test_a_new_plan_knows_what_was_tried_and_why_it_failed(tmp_path: Path) -> None:
    useless = {"verdict": "invalid", "reason": "still negative", "fixes": [{"step": "a", "advice": "other"}]}
    answers = {
        **SOUND,
        "planner": [PLAN, PLAN],
        "a": [{"parameters": {"value": value}} for value in (-70, -71, -72, 7)],
        "orchestrator": [VALID, useless, useless, useless, VALID],
    }
    course, script = await play(tmp_path, answers)
    assert (course.ending, root(course)) == ("solved", 4.0)
    again = script.told("planner")[1]
    assert '  - before: {"value": -71.0}: {"value": -71.0}' in again
    # Equation 3: the tools, inputs and parameters of the plan that was given up, and what came of them.
    assert '- root: square_root of {"number": ["sum.number"]} with {}, failed: ' in again
    assert "- root (square_root) failed: square_root: expected a number of at least 0, found -61" in again
    assert "- still negative (a: other)" in again
    assert '- {"value": -71.0}: {"value": -71.0}' in script.told("a")[3]


async def test_the_orchestrator_can_refuse(tmp_path: Path) -> None:
    refused = {"verdict": "reject", "reason": "there is no such root"}
    course, _ = await play(tmp_path, {**SOUND, "orchestrator": [refused]})
    assert (course.ending, course.reason) == ("rejected", "there is no such root")


async def test_without_checkpoints_nobody_judges_and_the_first_failure_ends_it(tmp_path: Path) -> None:
    course, script = await play(tmp_path / "sound", SOUND, "none")
    assert (course.ending, script.order) == ("solved", ["planner", "a", "b"])
    course, script = await play(tmp_path / "failed", {**SOUND, "a": [{"parameters": {"value": -70}}]}, "none")
    assert (course.ending, script.order) == ("unsolved", ["planner", "a", "b"])


async def test_step_wise_asks_after_every_step(tmp_path: Path) -> None:
    course, script = await play(tmp_path, {**SOUND, "orchestrator": [VALID] * 4}, "every step")
    assert course.ending == "solved"
    assert script.order.count("orchestrator") == 4


async def test_model_calls_are_bounded(tmp_path: Path) -> None:
    with pytest.raises(CallsUsedUp, match="all 3 model calls") as caught:
        await play(tmp_path, SOUND, calls=3)
    assert [record.step for record in caught.value.memory.records] == ["a", "b"]


async def test_a_plan_that_does_not_lead_to_the_goal_is_asked_for_again(tmp_path: Path) -> None:
    short = {"steps": PLAN["steps"][:3]}
    course, script = await play(tmp_path, {**SOUND, "planner": [short, PLAN]})
    assert course.ending == "solved"
    assert "The plan leads to no root; expected a step with square_root." in script.told("planner")[1]


async def test_where_only_reading_is_wanted_the_last_step_is_compared_with_the_statement(
    tmp_path: Path,
) -> None:
    answers = {**SOUND, "planner": [{"steps": PLAN["steps"][:2]}]}
    course, script = await play(tmp_path, answers, goal=NUMBERS)
    assert course.ending == "specified"
    assert script.order == ["planner", "a", "b", "orchestrator"]
    assert "They lead to the numbers, and nothing more." in script.told("planner")[0]
    assert "complete and without anything invented?" in script.told("orchestrator")[0]


async def test_a_course_that_was_stopped_goes_on_without_asking_or_working_again(tmp_path: Path) -> None:
    with pytest.raises(CallsUsedUp):
        await play(tmp_path, SOUND, calls=3)
    again = {"planner": [], "a": [], "b": [], "orchestrator": [VALID]}
    course, script = await play(tmp_path, again)
    assert (course.ending, root(course)) == ("solved", 4.0)
    assert script.order == ["orchestrator"]
    course, script = await play(tmp_path, {})
    assert (course.ending, script.order) == ("solved", [])


async def test_what_was_understood_is_read_again_with_another_question(tmp_path: Path) -> None:
    wrong = {"verdict": "invalid", "reason": "misread", "fixes": [{"step": "a", "advice": "it is seven"}]}
    answers = {
        **SOUND,
        "a": [{"parameters": {"value": 70}}, {"parameters": {"value": 7}}],
        "orchestrator": [VALID, wrong, VALID, VALID],
    }
    course, script = await play(tmp_path, answers, understanding_checks=2)
    assert (course.ending, root(course)) == ("solved", 4.0)
    first, second, *_ = script.told("orchestrator")
    assert "complete and without anything invented?" in first
    assert "find each number, sign, place and condition" in second


async def test_a_plan_that_cannot_be_read_is_asked_for_again_as_another_plan(tmp_path: Path) -> None:
    course, _ = await play(tmp_path, {**SOUND, "planner": ["no", "no", PLAN]})
    assert course.ending == "solved"
    course, _ = await play(tmp_path / "never", {**SOUND, "planner": ["no"] * 4})
    assert (course.ending, course.reason.partition(":")[0]) == ("unsolved", "no plan could be read")
