from datetime import date

import pytest

from sharp.llm.budgets import BudgetLimits, check_budget
from sharp.llm.cards import Price
from sharp.llm.ledger import CallTotals, Effect, Ledger, build_ledger, dollars
from sharp.llm.model_costs import shares
from sharp.llm.protocol import TokenUsage


def price(prompt: float | None, cached: float | None, completion: float | None) -> Price:
    return Price(prompt=prompt, cached=cached, completion=completion, date=date(2025, 8, 7), source="a list")


def chat(path: str, purpose: str, model: str, *usage: int) -> Effect:
    request = {"model": model, "purpose": purpose}
    return Effect(path, "chat", request, {"usage": vars(TokenUsage(*usage))}, {})


def run(path: str, split: str, seconds: float) -> Effect:
    return Effect(path, "evaluate", {"split": split}, {"total_s": seconds}, {})


PRICES = {"big": price(10.0, 1.0, 30.0), "small": price(1.0, None, 2.0), "free": price(0, 0, 0), "own": None}


def test_dollars_by_hand() -> None:
    usage = TokenUsage(prompt=1_000_000, cached=400_000, completion=100_000, reasoning=90_000)
    assert dollars(usage, PRICES["big"]) == pytest.approx(6.0 + 0.4 + 3.0)
    assert dollars(usage, PRICES["small"]) == pytest.approx(1.0 + 0.2)


@pytest.mark.parametrize("unknown", [None, price(None, 1, 1), price(1, 1, None)])
def test_an_unknown_price_is_not_zero(unknown: Price | None) -> None:
    assert dollars(TokenUsage(prompt=10, completion=10), unknown) is None


def test_tokens_that_were_not_counted_are_not_free() -> None:
    assert dollars(TokenUsage(), PRICES["big"]) is None
    assert dollars(TokenUsage(), PRICES["free"]) == 0


def test_accounts_by_purpose_and_model() -> None:
    ledger = build_ledger(
        [
            chat("analysis/classification", "analysis", "small", 1000, 0, 100),
            chat("genesis/c001/code", "genesis", "big", 2000, 500, 300, 200),
            chat("genesis/c002/code", "genesis", "big", 2000, 1500, 400, 250),
            chat("cycle-1/select/judge-1", "judge", "small", 5000, 0, 50),
        ],
        PRICES,
    )
    assert ledger.total.calls == 4
    assert ledger.total.tokens == 10_850
    assert ledger.by_purpose["genesis"].usage == TokenUsage(4000, 2000, 700, 450)
    assert ledger.by_purpose["genesis"].dollars == pytest.approx((2000 * 10 + 2000 * 1 + 700 * 30) / 1e6)
    assert ledger.by_model["small"].calls == 2
    assert ledger.by_model["small"].dollars == pytest.approx((6000 + 2 * 150) / 1e6)
    assert set(ledger.accounts) == {("analysis", "small"), ("genesis", "big"), ("judge", "small")}


@pytest.mark.parametrize("model", ["own", "not-in-the-list"])
def test_one_unpriced_call_makes_the_sum_unknown(model: str) -> None:
    ledger = build_ledger(
        [chat("a", "judge", "small", 1000, 0, 0), chat("b", "judge", model, 1000, 0, 0)], PRICES
    )
    assert ledger.total.dollars is None
    assert ledger.total.unpriced_calls == 1
    assert ledger.total.known_dollars == pytest.approx(1e-3)
    assert ledger.by_model["small"].dollars == pytest.approx(1e-3)


def test_program_runs_are_counted_by_kind() -> None:
    ledger = build_ledger(
        [
            run("cycle-1/round-1/c017/smoke", "smoke", 1.0),
            run("cycle-1/round-1/c017/debug-1/smoke", "smoke", 2.0),
            run("cycle-1/round-1/c017/debug-1/validation", "validation", 100.0),
            run("cycle-1/round-2/h1.2.2/smoke", "smoke", 4.0),
            run("cycle-1/round-2/h1.2.2/validation", "validation", 200.0),
            run("cycle-1/round-2/h1.2.2/debug-3/smoke", "smoke", 8.0),
            run("finalize/x64", "validation", 300.0),
            run("finalize/test", "test", 400.0),
        ],
        {},
    )
    assert ledger.runs == {"smoke": 2, "debug": 2, "evaluation": 2, "check": 1, "test": 1}
    assert ledger.seconds == {"smoke": 5.0, "debug": 10.0, "evaluation": 300.0, "check": 300.0, "test": 400.0}
    assert ledger.evaluations == 2
    assert ledger.executions == 6


def test_runs_from_the_cache_are_counted_but_cost_nothing() -> None:
    path, split = "cycle-1/round-1/c017/validation", "validation"
    paid, known = run(path, split, 100.0), run(path, split, 50.0)
    known = known._replace(reply={**known.reply, "environment": {"cached": True}})
    ledger = build_ledger([paid, known, known], {})
    assert (ledger.runs, ledger.cached) == ({"evaluation": 3}, {"evaluation": 2})
    assert (ledger.evaluations, ledger.cached_evaluations) == (3, 2)
    assert ledger.seconds == {"evaluation": 100.0}
    assert [limit.used for limit in check_budget(ledger, BudgetLimits(evaluations=1))] == [1]


def test_nothing_recorded_costs_nothing() -> None:
    ledger = build_ledger([], PRICES)
    assert ledger == Ledger()
    assert (ledger.total.dollars, ledger.evaluations, ledger.executions) == (0, 0, 0)


def test_a_hosted_models_cost_is_shared_by_tokens() -> None:
    ledger = Ledger(
        {
            ("genesis", "own"): CallTotals(1, TokenUsage(600, 0, 150)),
            ("judge", "own"): CallTotals(1, TokenUsage(200, 0, 50)),
            ("judge", "silent"): CallTotals(),
        }
    )
    found = shares(ledger, {"own": 8.0, "silent": 1.0})
    assert found == {("genesis", "own"): 6.0, ("judge", "own"): 2.0, ("judge", "silent"): 0.0}
