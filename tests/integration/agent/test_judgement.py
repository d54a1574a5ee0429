"""A course in words ends with the judgement of a specification, and with the numbers that were asked for."""

from __future__ import annotations

import json
from dataclasses import replace
from math import exp, pi, sin
from pathlib import Path

import numpy as np
import pytest

from sharp.agent import AgentConfig, headline, judged, run_session
from sharp.api import run_agents, solve
from sharp.errors import ClarificationNeeded
from sharp.problems import load_case, load_ill_posed
from sharp.solvers import SolveOptions

ROD = load_case("heat-rod-two-ends").statements[0].text
HERE = "What is u at x = 0.1 and t = 600, in kelvin?"


def quiet(_: str) -> None:
    """Say nothing."""


def test_asked_numbers_come_back_with_their_error(tmp_path: Path) -> None:
    finished = run_agents(
        AgentConfig(f"{ROD} {HERE}"), tmp_path, quiet, SolveOptions(time_limit=30, clock="cpu")
    )
    assert finished.answer is not None
    assert headline(finished) == finished.answer.verdict.headline
    assert finished.answer.verdict.verified
    (found,) = finished.answer.quantities.values()
    a, length = 50 / (7800 * 470), 0.4
    waves = ((30, 1), (-12, 3))
    exact = 273.15 + 20 + 60 * 0.1 / length
    exact += sum(c * sin(n * pi * 0.1 / length) * exp(-a * (n * pi / length) ** 2 * 600) for c, n in waves)
    assert found.value == pytest.approx(exact, abs=found.error)
    assert found.verified
    written = json.loads((tmp_path / "solve_result.json").read_text())
    assert written["answer"]["quantities"][0]["unit"] == "K"
    assert "asked1" in (tmp_path / "quantities.csv").read_text()
    report = (tmp_path / "report.md").read_text()
    found_by, asked, stated = (
        report.index(text) for text in ("Verified: ", "## Requested numbers", "## The problem")
    )
    assert found_by < asked < stated
    assert "asked1" in report[asked:stated]
    assert " K " in report[asked:stated]


def test_a_quenched_rod_whose_jump_is_meant_is_solved_by_the_same_call_with_the_answer(
    tmp_path: Path,
) -> None:
    statement = load_ill_posed("quenched-plate").statements[0].text
    with pytest.raises(ClarificationNeeded) as asked:
        solve(statement, output=tmp_path)
    answers = dict.fromkeys(asked.value.questions, "a jump is meant")
    found = solve(statement, output=tmp_path, answers=answers, time_limit=20.0)
    assert found.problem.specification.allow == ("corner-jump",)
    assert len(list(tmp_path.glob("session-*"))) == 1


def test_nothing_is_called_verified_that_nobody_judged(tmp_path: Path) -> None:
    finished = run_session(tmp_path, AgentConfig(ROD, policy="none"))
    assert finished.outcome.ending == "solved"
    assert headline(finished) == "A solution was found, and nothing has verified it."


def test_a_wrong_solution_of_the_team_is_found_out_and_replaced(tmp_path: Path) -> None:
    finished = run_session(tmp_path, AgentConfig(ROD, policy="none"))
    study = finished.solution
    assert study is not None
    assert study.solution is not None
    evaluate = study.solution.evaluate
    off = replace(
        study.solution, evaluate=lambda points, times: evaluate(points, times) + np.sin(9 * times)[:, None]
    )
    told: list[str] = []
    found = judged(
        replace(finished, solution=replace(study, solution=off)),
        SolveOptions(time_limit=30, clock="cpu"),
        told.append,
    )
    assert any("differs" in line for line in told)
    assert found.answer is not None
    assert found.answer.verdict.verified
    assert found.answer.discrete is not off
