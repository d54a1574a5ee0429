from datetime import date

import pytest

from sharp.llm.cards import Price
from sharp.llm.estimate import ANSWER_TOKENS, TYPICAL_SIZES, EstimateRange, PdeSharp, estimate

PRICE = Price(prompt=1.0, cached=0.1, completion=10.0, date=date(2025, 8, 7), source="a list")
PURPOSES = ("analysis", "genesis", "judge", "debug", "reporter")


def test_the_papers_run() -> None:
    result = estimate(PdeSharp())
    assert result.evaluations.expected == pytest.approx(3 * 493 / 105)
    assert result.evaluations.most == 36 * 5
    assert result.calls["analysis"] == EstimateRange(5, 10)
    assert result.calls["genesis"] == EstimateRange(32, 64)
    assert result.calls["judge"].expected == pytest.approx(3 * 493 / 105)
    assert result.calls["judge"].most == 3 * (2 * 3 + 3 * 9)
    assert result.calls["debug"].expected == pytest.approx(0.33 * 3 * 493 / 105)
    assert result.calls["debug"].most == 2 * 4 * 36


def test_criteria_are_written_once_a_cycle() -> None:
    plain, more = estimate(PdeSharp()), estimate(PdeSharp(written_criteria=True))
    assert more.calls["judge"].expected - plain.calls["judge"].expected == pytest.approx(3 * 148 / 105)
    assert "1.41 cycles, 4.7 rounds on average" in plain.assumptions[0]


def test_smaller_plans() -> None:
    result = estimate(
        PdeSharp(candidates=6, samples_per_call=4, judges=1, rounds=1, cycles=1, analysis_steps=1, repairs=0)
    )
    assert result.evaluations == EstimateRange(1, 1)
    assert result.calls["genesis"] == EstimateRange(2, 8)
    assert result.calls["judge"] == EstimateRange(1, 2)
    assert result.calls["debug"] == EstimateRange(0, 0)


def test_best_of_n_runs_every_candidate() -> None:
    result = estimate(PdeSharp(candidates=32, tournament=False))
    assert result.evaluations == EstimateRange(32, 160)
    assert result.calls["judge"] == EstimateRange(0, 0)
    assert result.calls["debug"] == EstimateRange(0.33 * 32, 256)
    assert result.prompt_tokens["judge"] == EstimateRange(0, 0)


def test_options_add_calls() -> None:
    plain, more = (
        estimate(PdeSharp(cycles=1)),
        estimate(PdeSharp(cycles=1, derivation=True, written_criteria=True)),
    )
    assert more.calls["genesis"].most == plain.calls["genesis"].most + 32
    assert more.calls["judge"].expected == plain.calls["judge"].expected + 3


def test_judges_read_all_candidates() -> None:
    few, many = estimate(PdeSharp(candidates=8)), estimate(PdeSharp(candidates=32))
    grown = many.prompt_tokens["judge"].expected - few.prompt_tokens["judge"].expected
    assert grown == pytest.approx(many.calls["judge"].expected * 24 * TYPICAL_SIZES.program.expected)
    assert many.prompt_tokens["debug"] == few.prompt_tokens["debug"]


def test_what_is_expected_is_within_bounds() -> None:
    result = estimate(PdeSharp())
    for purpose in PURPOSES:
        assert result.calls[purpose].expected <= result.calls[purpose].most
        assert result.prompt_tokens[purpose].expected <= result.prompt_tokens[purpose].most
        assert result.completion_tokens[purpose] == result.calls[purpose] * ANSWER_TOKENS
    assert any("0.33 repairs" in line for line in result.assumptions)


def test_dollars() -> None:
    result = estimate(PdeSharp())
    cost = result.dollars(dict.fromkeys(PURPOSES, (PRICE,)))
    prompt = sum((result.prompt_tokens[p] for p in PURPOSES), EstimateRange(0, 0))
    completion = sum((result.completion_tokens[p] for p in PURPOSES), EstimateRange(0, 0))
    assert cost is not None
    assert cost.expected == pytest.approx((prompt.expected + 10 * completion.expected) / 1e6, rel=1e-4)
    assert cost.most == pytest.approx((prompt.most + 10 * completion.most) / 1e6, rel=1e-4)


def test_judges_share_their_calls() -> None:
    free = Price(prompt=0, completion=0, date=date(2025, 8, 7), source="a list")
    alone = estimate(PdeSharp()).dollars({**dict.fromkeys(PURPOSES, (free,)), "judge": (PRICE,)})
    shared = estimate(PdeSharp()).dollars({**dict.fromkeys(PURPOSES, (free,)), "judge": (PRICE, free, free)})
    assert alone is not None
    assert shared is not None
    assert shared.expected == pytest.approx(alone.expected / 3, rel=1e-4)


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    assert estimate(PdeSharp()).dollars({**dict.fromkeys(PURPOSES, (PRICE,)), "debug": (PRICE, None)}) is None


def test_a_purpose_without_prices_is_left_out() -> None:
    result = estimate(PdeSharp())
    whole = result.dollars(dict.fromkeys(PURPOSES, (PRICE,)))
    rest = result.dollars(dict.fromkeys([p for p in PURPOSES if p != "genesis"], (PRICE,)))
    genesis = result.dollars({"genesis": (PRICE,)})
    assert whole is not None
    assert rest is not None
    assert genesis is not None
    assert whole.expected == pytest.approx(rest.expected + genesis.expected)
