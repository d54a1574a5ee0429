"""The loop without a plan: one step at a time, chosen, carried out and verified."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hpc.journal import read_run
from sharp.agent.plans import ToolPlan
from sharp.agent.responses import read_next, read_stop
from sharp.agent.sessions import SessionResult, run_session
from sharp.agent.settings import AgentConfig
from sharp.agent.team import AgentLimits
from sharp.agent.toolkit import standard_toolkit
from sharp.errors import ReplyError
from sharp.problems.cases import load_case, load_ill_posed

CASE = load_case("heat-rod-two-ends")
SETTINGS = AgentConfig(CASE.statements[0].text, policy="octo")


def asked(finished: SessionResult) -> list[str]:
    return [path.rpartition("-")[0] for path in read_run(finished.folder).effects]


def test_every_step_is_chosen_carried_out_and_verified_in_turn(tmp_path: Path) -> None:
    finished = run_session(tmp_path, SETTINGS)
    assert finished.outcome.ending == "solved", finished.outcome.reason
    order = asked(finished)
    assert order[:5] == ["analysis", "next_step", "s1/parameters", "s1/tool_call", "is_done"]
    steps = len(finished.outcome.memory.plan.steps)
    assert order.count("next_step") == order.count("is_done") == steps
    assert finished.solution is not None


def test_what_was_misread_is_done_again_in_further_steps(tmp_path: Path) -> None:
    finished = run_session(tmp_path, replace(SETTINGS, error_rate=0.15, seed=0))
    ids = finished.outcome.memory.plan.ids
    assert any("-" in step for step in ids), "this seed makes a mistake that is seen"
    assert len(set(ids)) == len(ids)
    assert finished.outcome.ending == "solved", finished.outcome.reason


def test_steps_are_bounded(tmp_path: Path) -> None:
    finished = run_session(tmp_path, replace(SETTINGS, allowance=AgentLimits(steps=3)))
    assert (finished.outcome.ending, finished.outcome.reason) == ("unsolved", "all 3 steps are used up")


@pytest.mark.parametrize("name", ["rod-one-end", "backward-rod"])
def test_what_cannot_be_solved_as_stated_ends_with_a_question_or_a_refusal(tmp_path: Path, name: str) -> None:
    case = load_ill_posed(name)
    finished = run_session(tmp_path, replace(SETTINGS, statement=case.statements[0].text))
    assert finished.outcome.ending == {"clarify": "needs_clarification", "reject": "rejected"}[case.verdict]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"step": {"id": "a", "tool": "solve"}}', "unknown tool 'solve'"),
        ('{"finish": true, "reject": "no"}', "expected exactly one of step, finish, ask_user, reject"),
        ('{"go": "on"}', "expected exactly one of step, finish, ask_user, reject, found go"),
    ],
)
def test_a_next_step_that_is_none_is_refused(text: str, says: str) -> None:
    with pytest.raises(ReplyError, match=says):
        read_next(text, ToolPlan(()), standard_toolkit())


def test_a_verifier_answers_with_true_or_false() -> None:
    assert read_stop('{"stop": true}')
    with pytest.raises(ReplyError, match="expected stop as true or false"):
        read_stop('{"stop": "perhaps"}')
