"""Courses with what a strong model replied in November 2026: fewer calls than then, and the same problems."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sharp.agent.sessions import ModelCalls, SessionResult, run_session
from sharp.agent.settings import ROLES, AgentConfig
from sharp.llm.cards import ModelCard, load_card
from tests.helpers.agent.recorded_team import FITZHUGH_NAGUMO, WALL, RecordedCourse, RecordedTeam

SAMPLING = load_card("rule-based").sampling
CARD = ModelCard(name="recorded", description="a record", context=200_000, sampling=SAMPLING)
JUMP_IS_MEANT = """\
The jump at the inner face is meant: `assemble_problem` takes it.

```json
{"verdict": "invalid", "reason": "a jump is meant", "fixes": [{"step": "s6", "advice": "allow: [corner-jump]"}]}
```
"""
WITH_JUMP = """\
```json
{"parameters": {"title": "Wall of a cold store", "accuracy": 0.0001, "allow": ["corner-jump"]}}
```
"""


def play(
    folder: Path, course: RecordedCourse, policy: Any, **changes: list[str]
) -> tuple[SessionResult, RecordedTeam]:
    replies: Mapping[str, list[str]] = {**course.replies, **changes}
    team = RecordedTeam(replies)
    settings = AgentConfig(course.statement, dict.fromkeys(ROLES, "recorded"), policy=policy)
    finished = run_session(
        folder,
        settings,
        cards={"recorded": CARD},
        answer=lambda asked: dict.fromkeys(asked, "Yes, a sudden jump at t = 0 is meant."),
        calls=ModelCalls(lambda _: team),
    )
    return finished, team


def test_fitzhugh_and_nagumo_are_set_up_in_one_plan(tmp_path: Path) -> None:
    finished, team = play(tmp_path, FITZHUGH_NAGUMO, "translation")
    assert finished.outcome.ending == "specified", finished.outcome.reason
    assert finished.problem is not None
    assert set(finished.problem.parameters) == {"diff", "eps", "beta", "gamma"}
    # Twenty calls and two plans then. A reserved name and a place that is none are sent back at once, parameters
    # without their wrapper are read, and an answer to a cry for help is advice.
    assert team.order.count("planner") == 1
    assert len(team.order) == 16
    assert "'D' is a word of the grammar" in team.told("eq")[1]
    assert "expected one of the places all, x = 0, x = 60; found 'right'" in team.told("bc_right")[1]
    assert team.order.count("ic_w") == 1
    assert "the output grid cannot be set with these tools" in team.told("prob")[2]
    assert finished.served_by == {"recorded": ("recorded-model",)}


@pytest.mark.parametrize("asks", [False, True], ids=["is told of the jump", "asks the user"])
def test_the_wall_is_solved_in_one_session_though_the_team_asks(tmp_path: Path, asks: bool) -> None:
    question, *readings = WALL.replies["orchestrator"]
    judged = [*([question] if asks else []), JUMP_IS_MEANT, *readings]
    chosen = [WALL.replies["s6"][0], WITH_JUMP]
    finished, team = play(tmp_path, WALL, "prog-act", s6=chosen, orchestrator=judged)
    assert finished.outcome.ending == "solved", finished.outcome.reason
    assert finished.problem is not None
    assert finished.problem.specification.allow == ("corner-jump",)
    # Twenty-two calls in two sessions then.
    assert len(team.order) == (14 if asks else 13)
    assert len(list(tmp_path.glob("session-*"))) == 1
    assert bool(finished.answered) is asks
