"""Whole tournaments by scripted effects, judged by measures alone or by a combined score."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sharp.evaluation.protocol import Evaluation, EvaluationRequest, Scores
from sharp.methods.pde_sharp import pde_sharp
from sharp.tournament.state import Tournament
from tests.helpers.models.scripted import ScriptedEffects, fenced, patch, program, script, selection, session

# What each program scores: its error falls where its initial condition gets worse, and conversely.
ERRORS = {0.1: 9.11e-3, 0.2: 9.22e-3, 0.01: 9.33e-3, 0.02: 9.44e-3}
STARTS = {0.1: 4.1e-3, 0.2: 2.2e-3, 0.01: 8.3e-4, 0.02: 6.4e-4}


def scored(request: EvaluationRequest) -> Evaluation:
    tag = float(re.search(r"ERROR = (.*)", request.code)[1])
    error, measures = ERRORS[tag], dict.fromkeys(request.measures, STARTS[tag])
    scores = Scores(error, (error, error), 9.5, 9.6, (9.6, 9.6), 5e-2, "", 9.7, measures)
    return Evaluation(None, scores, 1.0, 2.0, 100.0, None, None, "float64", "", "", {"device": "cpu"})


async def played(**feedback: Any) -> tuple[Tournament, ScriptedEffects]:
    rules = {
        r"^genesis/c\d+/code$": lambda path, _: fenced(program(int(path.split("/")[1][1:]) / 10)),
        r"select/judge-2": selection(["c002", "c001"]),  # before the judges in general
        r"select/judge": selection(["c001", "c002"]),
        r"round-\d+/judge-1$": patch("c001", "ERROR = 0.1", "ERROR = 0.01"),
        r"round-\d+/judge-[23]$": patch("c002", "ERROR = 0.2", "ERROR = 0.02"),
    }
    effects = ScriptedEffects(script(rules=rules), scored)
    state = await pde_sharp(session(effects, genesis={"candidates": 2}, feedback=feedback))
    return state, effects


async def test_measures_are_asked_for_where_they_count() -> None:
    _, effects = await played(metrics=["initial_condition", "residual", "two_grid"])
    scored_runs = [request for request in effects.runs.values() if request.study == "score"]
    asked = {(request.split, request.measures) for request in scored_runs}
    assert asked == {
        ("smoke", ()),
        ("validation", ("initial_condition", "two_grid")),
        ("test", ("initial_condition", "two_grid")),
    }


@pytest.mark.parametrize("kinds", [["nrmse"], ["residual"], ["nrmse", "residual"], ["none"]])
async def test_the_settings_of_the_paper_ask_for_none(kinds: list[str]) -> None:
    _, effects = await played(metrics=kinds)
    assert {request.measures for request in effects.runs.values()} == {()}


@pytest.mark.parametrize(
    ("feedback", "best"),
    [
        ({"metrics": ["nrmse", "initial_condition"]}, 9.11e-3),
        ({"metrics": ["initial_condition", "residual"]}, 6.4e-4),
        ({"metrics": ["residual", "initial_condition"], "weights": {"initial_condition": 2}}, 2 * 6.4e-4),
        (
            {"metrics": ["initial_condition", "nrmse"], "weights": {"initial_condition": 1, "nrmse": 1}},
            6.4e-4 + 9.44e-3,
        ),
    ],
)
async def test_the_winner_is_the_best_by_what_ranks(feedback: dict[str, Any], best: float) -> None:
    state, _ = await played(**feedback)
    metrics = {run.candidate: run.metric for run in state.executions if run.split == "validation"}
    assert state.best is not None
    assert metrics[state.best] == min(metrics.values()) == pytest.approx(best)


async def test_no_prompt_holds_a_number_derived_from_the_reference_if_no_kind_does() -> None:
    kinds = ["initial_condition", "residual"]
    state, effects = await played(
        metrics=kinds, weights={"residual": 1, "initial_condition": 10}, reveal_data_error=True
    )
    assert state.best is not None
    # The author of the report's prose is told how the run ended.
    asked = [request for path, request in effects.chats.items() if not path.startswith("reporter")]
    prompts = [message.content for request in asked for message in request.messages]
    assert any("Initial condition mismatch: 4.100e-03" in prompt for prompt in prompts)
    assert any("Combined score: 9.100e-02" in prompt for prompt in prompts)
    for prompt in prompts:
        assert not re.search(r"\b9\.\d+e-03|\b9\.[5-7]|nRMSE: |Maximum error", prompt)
