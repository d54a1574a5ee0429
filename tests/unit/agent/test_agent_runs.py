"""Courses on disk: they go on where they were, answer again from the record, and lie side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hpc.errors import ReplayMiss
from sharp.agent.policies import Policy
from sharp.agent.sessions import replay_session, run_session, session_folder
from sharp.agent.settings import ROLES, AgentConfig
from sharp.agent.team import AgentLimits
from sharp.errors import ConfigurationError
from sharp.llm.cards import list_cards
from sharp.problems.cases import load_case

SETTINGS = AgentConfig(load_case("heat-rod-two-ends").statements[0].text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("courses")


def test_a_course_finds_problem_and_solution_and_counts_tokens(folder: Path) -> None:
    said: list[str] = []
    finished = run_session(folder, SETTINGS, said.append)
    assert finished.outcome.ending == "solved", finished.outcome.reason
    assert finished.problem is not None
    assert finished.problem.equations == load_case("heat-rod-two-ends").problem.equations
    assert finished.solution is not None
    assert finished.solution.converged
    assert finished.usage.completion > 100
    assert any("solve_in_time" in line for line in said)
    written = yaml.safe_load((finished.folder / "agent.yaml").read_text(encoding="utf-8"))
    assert written["statement"] == SETTINGS.statement


def test_the_same_settings_again_ask_nobody(folder: Path) -> None:
    first = run_session(folder, SETTINGS)
    said: list[str] = []
    again = run_session(folder, SETTINGS, said.append)
    assert not any("asked" in line for line in said)
    assert again.outcome == first.outcome
    assert (again.calls, again.usage) == (first.calls, first.usage)


def test_a_finished_course_can_be_replayed(folder: Path) -> None:
    assert replay_session(folder, SETTINGS).outcome == run_session(folder, SETTINGS).outcome


@pytest.mark.parametrize(
    ("policy", "calls", "done"),
    [
        ("prog-act", 0, []),
        ("prog-act", 4, ["define_equations", "define_domain", "define_initial_condition"]),
        ("octo", 7, ["define_equations", "define_domain"]),
        ("tool-generation", 0, []),
        ("translation", 2, ["define_equations"]),
    ],
)
def test_a_course_whose_calls_are_used_up_ends_with_what_was_done(
    tmp_path: Path, policy: Policy, calls: int, done: list[str]
) -> None:
    short = replace(SETTINGS, policy=policy, allowance=AgentLimits(calls=calls))
    finished = run_session(tmp_path, short)
    course = finished.outcome
    assert (course.ending, course.exhausted, finished.calls) == ("unsolved", True, calls)
    assert course.reason == f"all {calls} model calls that this problem may take are used up"
    assert [record.recipe.tool for record in course.memory.records] == done
    assert replay_session(tmp_path, short).outcome == course


def test_what_was_understood_before_the_last_call_stays(tmp_path: Path) -> None:
    whole = run_session(tmp_path, SETTINGS)
    finished = run_session(tmp_path, replace(SETTINGS, allowance=AgentLimits(calls=whole.calls - 1)))
    assert finished.outcome.exhausted
    assert finished.problem is not None
    assert finished.problem.equations == load_case("heat-rod-two-ends").problem.equations
    assert finished.usage.completion > 0


def test_a_course_that_has_not_ended_cannot_be_replayed(folder: Path, tmp_path: Path) -> None:
    whole = run_session(folder, SETTINGS)
    cut = session_folder(tmp_path, SETTINGS)
    cut.mkdir()
    lines = (whole.folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (cut / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    with pytest.raises(ReplayMiss):
        replay_session(tmp_path, SETTINGS)


def test_other_settings_are_another_course_beside_the_first(folder: Path) -> None:
    other = replace(SETTINGS, seed=1)
    assert session_folder(folder, other) != session_folder(folder, SETTINGS)
    assert run_session(folder, other).outcome.ending == "solved"


def test_a_model_may_be_the_file_of_its_card(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(list_cards()["rule-based"].read_text().replace("name: rule-based", "name: mine"))
    settings = replace(SETTINGS, models=dict.fromkeys(ROLES, str(file)), policy="translation")
    assert run_session(tmp_path, settings).outcome.ending == "specified"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"policy": "progact"}, "did you mean 'prog-act'?"),
        ({"error_rate": 1.0}, "expected a rate from 0 to below 1"),
        ({"statement": " "}, "expected a problem in natural language"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        replace(SETTINGS, **change)  # type: ignore[arg-type]
