"""How far programs are from those that were written independently of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from sharp.evaluation.feedback import feedback_text, metric
from sharp.evaluation.protocol import Scores
from sharp.evaluation.sketch import sketch_of
from sharp.tournament.agreement import with_agreement
from sharp.tournament.state import Candidate, Execution, Tournament
from tests.helpers.models.scripted import ScriptedEffects, script, session, simulated_evaluation

RUN = session(
    ScriptedEffects(script()),
    evaluation={"data_kind": "none"},
    feedback={"metrics": ["residual", "agreement"], "weights": {"residual": 1, "agreement": 1}},
)
RIGHT = np.random.default_rng(5).standard_normal((2, 400))


def state_of(**programs: tuple[float, tuple[str, ...]]) -> Tournament:
    """Programs by id: how far their outputs are from the right ones in some direction of their own, and their bases."""
    state = Tournament("p")
    for number, (name, (error, parents)) in enumerate(programs.items()):
        away = np.random.default_rng(number).standard_normal(RIGHT.shape)
        scores = Scores(None, (), None, None, (), 0.01, sketch=sketch_of({"u": RIGHT + error * away}))
        found = simulated_evaluation(scores, None)
        code = Candidate(name, "genesis", "numerical", "m", f"# {number}", "", parents=parents)
        state = state.with_candidates(code)
        run = Execution(name, f"r/{name}", "validation", found, RUN.metric(found))
        state = replace(state, executions=(*state.executions, run))
    return with_agreement(RUN, state)


def agreements(state: Tournament) -> dict[str, float | None]:
    return {run.candidate: run.evaluation.scores.measures.get("agreement") for run in state.executions}


def test_the_program_that_is_alone_with_its_result_is_furthest_from_the_others() -> None:
    state = state_of(a=(1e-4, ()), b=(1e-4, ()), wrong=(0.5, ()))
    found = agreements(state)
    assert found["wrong"] == pytest.approx(0.5, rel=0.3)
    assert max(found["a"], found["b"]) < 1e-3
    ranks = {run.candidate: run.metric for run in state.executions}
    assert ranks["a"] == pytest.approx(0.01 + found["a"])
    run = next(run for run in state.executions if run.candidate == "a")
    told = feedback_text(run.evaluation, ("agreement",))
    assert "(median of the relative distances from 2 independent programs)" in told


def test_relatives_and_copies_are_no_evidence() -> None:
    assert agreements(state_of(wrong=(0.5, ()), child=(0.5, ("wrong",)))) == {"wrong": None, "child": None}
    state = state_of(wrong=(0.5, ()), right=(1e-4, ()), child=(0.5, ("wrong",)))
    assert min(agreements(state).values()) > 0.2
    copies = state_of(a=(0.0, ()), b=(0.0, ()))
    assert agreements(copies) == {"a": None, "b": None}


def test_who_is_alone_is_ranked_by_the_rest() -> None:
    (run,) = state_of(a=(0.1, ())).executions
    assert (
        run.metric
        == metric(run.evaluation, ("residual", "agreement"), {"residual": 1, "agreement": 1})
        == 0.01
    )


def test_judges_are_told_of_it_in_every_run_and_rank_by_what_is_configured() -> None:
    state = state_of(a=(0.1, ()), b=(0.2, ()))
    plain = session(ScriptedEffects(script()), feedback={"metrics": ["residual"]})
    run = with_agreement(plain, state).executions[0]
    assert plain.feedback(run.evaluation).count("Disagreement: ") == 1
    assert run.metric == 0.01
    others = ({"feedback": {"metrics": ["none"]}}, {"method": "aide"})
    for sections in others:
        assert with_agreement(session(ScriptedEffects(script()), **sections), state) is state
