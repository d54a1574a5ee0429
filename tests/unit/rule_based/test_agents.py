"""The team as the rule-based model plays it: sound without mistakes, and corrected where it makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharp.agent.prog_act import SessionOutcome
from sharp.agent.sessions import run_session
from sharp.agent.settings import AgentConfig
from sharp.errors import ModelRefused
from sharp.problems.cases import load_case, load_ill_posed

ROD = load_case("heat-rod-two-ends").statements[0].text


def play(folder: Path, statement: str = ROD, mistakes: float = 0.0, seed: int = 0) -> SessionOutcome:
    return run_session(folder, AgentConfig(statement, error_rate=mistakes, seed=seed)).outcome


def test_without_mistakes_every_step_is_right_at_once(tmp_path: Path) -> None:
    course = play(tmp_path)
    assert course.ending == "solved", course.reason
    assert len(course.memory.records) == len(course.memory.plan.steps)
    findings = [finding for record in course.memory.records for finding in record.findings]
    names = {finding.name for finding in findings}
    assert {"refinement", "residual of the equations", "initial state"} <= names
    assert all(finding.passed for finding in findings)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_mistakes_are_made_and_most_sessions_still_end_well(tmp_path: Path, seed: int) -> None:
    course = play(tmp_path, mistakes=0.2, seed=seed)
    assert course.ending == "solved", course.reason


def test_a_statement_that_is_not_known_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="understands no language"):
        play(tmp_path, "Solve the heat equation.")


@pytest.mark.parametrize("name", ["rod-one-end", "backward-rod", "poisson-somewhere", "quenched-plate"])
def test_what_cannot_be_solved_as_stated_is_asked_about_or_refused(tmp_path: Path, name: str) -> None:
    case = load_ill_posed(name)
    course = play(tmp_path, case.statements[0].text)
    ending = {"clarify": "needs_clarification", "reject": "rejected"}[case.verdict]
    assert course.ending == ending, course.reason
    assert bool(course.questions) == (case.verdict == "clarify")
