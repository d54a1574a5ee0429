import pytest

from sharp.llm.budgets import BudgetLimits, check_budget
from sharp.llm.ledger import CallTotals, Ledger
from sharp.llm.model_costs import BreakEven, break_even
from sharp.llm.protocol import TokenUsage


def ledger(dollars: float = 2.0, unpriced: int = 0, evaluations: int = 9) -> Ledger:
    accounts = {
        ("genesis", "big"): CallTotals(32, TokenUsage(40_000, 0, 8_000), dollars / 2, 0),
        ("judge", "big"): CallTotals(12, TokenUsage(400_000, 0, 2_000), dollars / 2, unpriced),
    }
    return Ledger(accounts, {"evaluation": evaluations, "smoke": 12, "test": 1})


def test_no_limits_no_complaints() -> None:
    assert check_budget(ledger(), BudgetLimits()) == ()


@pytest.mark.parametrize(
    ("budget", "used", "level"),
    [
        (BudgetLimits(calls=44), 44, "stop"),
        (BudgetLimits(calls=45), 44, "warn"),
        (BudgetLimits(tokens=450_000), 450_000, "stop"),
        (BudgetLimits(tokens=500_000), 450_000, "warn"),
        (BudgetLimits(dollars=1.5), 2.0, "stop"),
        (BudgetLimits(dollars=2.5), 2.0, "warn"),
        (BudgetLimits(evaluations=0), 9, "stop"),
        (BudgetLimits(evaluations=11), 9, "warn"),
    ],
)
def test_limits(budget: BudgetLimits, used: float, level: str) -> None:
    (limit,) = check_budget(ledger(), budget)
    assert (limit.used, limit.level) == (used, level)
    assert limit.name in limit.sentence


def test_far_limits_are_silent() -> None:
    assert check_budget(ledger(), BudgetLimits(calls=100, tokens=10**6, dollars=2.6, evaluations=12)) == ()


def test_a_limit_of_nothing_stops_before_the_first_call() -> None:
    (limit,) = check_budget(Ledger(), BudgetLimits(dollars=0))
    assert limit.level == "stop"


def test_unknown_prices_are_a_warning_of_their_own() -> None:
    (limit,) = check_budget(ledger(unpriced=3), BudgetLimits(dollars=100))
    assert limit.level == "warn"
    assert "3 calls have no known price" in limit.sentence
    assert [x.level for x in check_budget(ledger(unpriced=3), BudgetLimits(dollars=2))] == ["stop"]


def test_break_even_of_the_paper() -> None:
    # Requirement 0.4: $3.26 more on language models, 18.8 evaluations saved: 30 min of a T4 at $0.35/h.
    paper = BreakEven("CodePDE", 3.26, 19)
    assert paper.per_evaluation == pytest.approx(0.17, abs=0.005)
    assert "more than $0.172" in paper.sentence()


def test_break_even_leaves_genesis_to_both() -> None:
    result = break_even(ledger(dollars=4.6), candidates=32)
    assert result == BreakEven("best-of-32", 2.3, 23)
    assert result.per_evaluation == pytest.approx(0.1)
    assert result.sentence().endswith("more than $0.1")


def test_break_even_is_honest_about_what_it_does_not_know() -> None:
    assert break_even(ledger(unpriced=1), 32).per_evaluation is None
    assert "no known price" in break_even(ledger(unpriced=1), 32).sentence()
    assert break_even(ledger(evaluations=40), 32).per_evaluation is None
    assert "does not pay" in break_even(ledger(evaluations=40), 32).sentence()
    assert break_even(ledger(dollars=0), 32).per_evaluation == 0
