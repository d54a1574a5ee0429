"""Courses on disk: they go on where they were, answer again from the record, and lie side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from hpc.errors import ReplayMiss
from sharp.agent.runs import course_folder, replay_course, run_course
from sharp.agent.settings import Settings
from sharp.agent.team import Allowance
from sharp.agentbench.cases import load_case
from sharp.errors import BudgetExceeded, ConfigurationError

SETTINGS = Settings(load_case("heat-rod-two-ends").statements[0].text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("courses")


def test_a_course_finds_problem_and_solution_and_counts_tokens(folder: Path) -> None:
    said: list[str] = []
    finished = run_course(folder, SETTINGS, said.append)
    assert finished.course.ending == "solved", finished.course.reason
    assert finished.problem is not None
    assert finished.problem.equations == load_case("heat-rod-two-ends").problem.equations
    assert finished.solution is not None
    assert finished.solution.agreed
    assert finished.usage.completion > 100
    assert any("solve_in_time" in line for line in said)
    written = yaml.safe_load((finished.folder / "settings.yaml").read_text(encoding="utf-8"))
    assert written["statement"] == SETTINGS.statement


def test_the_same_settings_again_ask_nobody(folder: Path) -> None:
    first = run_course(folder, SETTINGS)
    said: list[str] = []
    again = run_course(folder, SETTINGS, said.append)
    assert not any("asked" in line for line in said)
    assert again.course == first.course
    assert (again.calls, again.usage) == (first.calls, first.usage)


def test_a_finished_course_can_be_replayed(folder: Path) -> None:
    assert replay_course(folder, SETTINGS).course == run_course(folder, SETTINGS).course


def test_a_course_that_ran_out_of_calls_cannot_be_replayed_to_the_end(tmp_path: Path) -> None:
    short = replace(SETTINGS, allowance=Allowance(calls=4))
    with pytest.raises(BudgetExceeded):
        run_course(tmp_path, short)
    with pytest.raises((BudgetExceeded, ReplayMiss)):
        replay_course(tmp_path, short)


def test_other_settings_are_another_course_beside_the_first(folder: Path) -> None:
    other = replace(SETTINGS, seed=1)
    assert course_folder(folder, other) != course_folder(folder, SETTINGS)
    assert run_course(folder, other).course.ending == "solved"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"policy": "progact"}, "did you mean 'prog-act'?"),
        ({"mistakes": 1.0}, "expected a rate from 0 to below 1"),
        ({"statement": " "}, "expected a problem in words"),
    ],
)
def test_settings_that_make_no_sense_are_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        replace(SETTINGS, **change)  # type: ignore[arg-type]
