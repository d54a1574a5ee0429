"""What a run is estimated to need, held against what its method asks and runs."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

import pytest

from sharp.llm.cards import load_card
from sharp.llm.estimate import Estimate, EstimateRange, estimate
from sharp.methods import run_method
from sharp.runs.plan import prices_of, size_of
from sharp.tournament.run_context import RunContext
from tests.helpers.models.scripted import ScriptedEffects, fenced, program, script, session

SMALL: dict[str, Any] = {"genesis": {"candidates": 6}, "synthesis": {"repairs": 2}}
# The published sizes of the methods, smaller where that only takes time.
METHODS: dict[str, dict[str, Any]] = {
    "codepde": SMALL,
    "codepde-refine": SMALL,
    "cot-reflection": SMALL,
    "moa": SMALL,
    "cepo": {**SMALL, "cepo": {"rating_model": "local"}},
    "funsearch": {"funsearch": {"iterations": 8, "initial": 5}},
    "aide": {"aide": {"steps": 20, "drafts": 6}},
    "pde-sharp": {**SMALL, "synthesis": {"repairs": 2, "mode": "best-of-n"}},
}


def answering(broken: int) -> Any:
    """Write a new program with every answer, every `broken`-th of which raises; rate every answer as right."""
    numbers = count(1)

    def write(path: str, request: Any) -> Any:
        if "/rating-" in path:
            return "Rating: [[1]]"
        texts = []
        for number in (next(numbers) for _ in range(request.n)):
            crash = "boom" if number % broken == 0 else None
            texts.append(fenced(program(1 / number, f"p{number}", crash=crash)))
        return tuple(texts)

    return script(rules={r"^(?!analysis|reporter)": write})


async def asked(method: str, broken: int = 4) -> tuple[RunContext, ScriptedEffects]:
    effects = ScriptedEffects(answering(broken))
    played = session(effects, method=method, **METHODS[method])
    played = RunContext(
        played.config, played.problem, {**played.cards, "local": load_card("local")}, played.data, effects
    )
    await run_method(played)
    return played, effects


def guessed(played: RunContext) -> Estimate:
    return estimate(size_of(played.config))


@pytest.mark.parametrize("method", METHODS)
async def test_no_method_asks_or_runs_more_than_its_estimate_says_at_most(method: str) -> None:
    played, effects = await asked(method)
    guess = guessed(played)
    calls = Counter(call.purpose for call in effects.chats.values())
    assert set(calls) <= set(guess.calls)
    for purpose, span in guess.calls.items():
        assert calls[purpose] <= span.most, purpose
        if purpose in ("genesis", "search", "analysis") and method != "pde-sharp":
            assert calls[purpose] == span.expected, purpose
    assert calls["genesis"] + calls["search"] > 0
    assert len(effects.validations()) <= guess.evaluations.most
    assert all(span.expected <= span.most for span in (*guess.calls.values(), guess.evaluations))


@pytest.mark.parametrize("method", METHODS)
async def test_where_no_program_fails_each_is_evaluated_once_as_is_expected_of_all_but_aide(
    method: str,
) -> None:
    played, effects = await asked(method, broken=10**6)
    guess = guessed(played)
    assert "debug" not in {call.purpose for call in effects.chats.values()}
    if method == "aide":
        assert len(effects.validations()) == guess.evaluations.most == 20
    else:
        assert len(effects.validations()) == guess.evaluations.expected


@pytest.mark.parametrize(
    ("method", "calls", "evaluations"),
    [
        ("codepde", 32, 32),
        ("codepde-refine", 32 + 12, 44),
        ("cot-reflection", 32, 32),
        ("moa", 32 * 3, 32),
        ("cepo", 32 * 27, 32),
        ("funsearch", 12 + 32, 44),
    ],
)
def test_the_published_sizes(method: str, calls: int, evaluations: int) -> None:
    guess = estimate(size_of(session(ScriptedEffects(script()), method=method).config))
    writing = guess.calls["genesis"] + guess.calls.get("search", EstimateRange(0, 0))
    assert writing.expected == calls
    assert guess.evaluations == EstimateRange(evaluations, evaluations * 5)


def test_aide_takes_its_steps_and_no_more() -> None:
    guess = estimate(size_of(session(ScriptedEffects(script()), method="aide").config))
    assert guess.calls == {"search": EstimateRange(96, 192)}
    assert guess.evaluations.expected == pytest.approx(96 / 2.15)
    assert guess.evaluations.most == 96


def test_of_cepo_the_model_that_rates_bears_its_share_of_the_price() -> None:
    options = {"method": "cepo", "models": {"generator": "gpt-4o"}}
    cards = {name: load_card(name) for name in ("gpt-4o", "rule-based", "local")}
    alone, rated, unknown = (
        session(ScriptedEffects(script()), **options, cepo=rating).config
        for rating in ({}, {"rating_model": "rule-based"}, {"rating_model": "local"})
    )
    whole, rest = (estimate(size_of(config)).dollars(prices_of(config, cards)) for config in (alone, rated))
    assert whole is not None
    assert rest is not None
    debugging = estimate(size_of(alone)).dollars({"debug": prices_of(alone, cards)["debug"]})
    assert debugging is not None
    assert (rest.expected - debugging.expected) / (whole.expected - debugging.expected) == pytest.approx(
        8 / 9
    )
    assert estimate(size_of(unknown)).dollars(prices_of(unknown, cards)) is None


def test_the_longest_answer_that_a_technique_allows_bounds_its_tokens() -> None:
    plain, bounded = (
        estimate(size_of(session(ScriptedEffects(script()), method=method).config))
        for method in ("codepde", "cot-reflection")
    )
    assert plain.completion_tokens["genesis"].most == 32 * (8000 + 8000)
    assert bounded.completion_tokens["genesis"].most == 32 * (4096 + 8000)
