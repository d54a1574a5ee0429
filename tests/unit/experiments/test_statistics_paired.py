"""Paired comparison: ratios, wins, failures and intervals, against values worked out by hand and by simulation."""

from __future__ import annotations

from itertools import product
from math import exp, log
from statistics import median

import numpy as np
import pytest
from scipy.stats import binomtest

from sharp.experiments.statistics import compare, interval, sign_test

Values = dict[str, dict[int, float | None]]


def constant(value: float, problems: int = 5, seeds: int = 3) -> Values:
    return {f"p{problem}": dict.fromkeys(range(seeds), value) for problem in range(problems)}


def test_the_ratio_of_a_problem_is_the_median_and_the_overall_one_the_geometric_mean() -> None:
    first: Values = {"burgers": {0: 1.0, 1: 2.0, 2: 50.0}, "darcy": {0: 8.0}}
    second: Values = {"burgers": {0: 2.0, 1: 8.0, 2: 100.0}, "darcy": {0: 1.0}}
    found = compare(first, second)
    assert [each.ratio for each in found.problems] == pytest.approx([0.5, 8.0])
    assert found.ratio == pytest.approx(2.0)
    assert found.without == pytest.approx({"burgers": 8.0, "darcy": 0.5})
    assert (found.pairs, found.wins, found.ties, found.losses) == (4, 3, 0, 1)


def test_the_other_way_round_everything_is_inverted() -> None:
    generator = np.random.default_rng(3)
    first, second = (
        {f"p{k}": dict(enumerate(generator.lognormal(size=5).tolist())) for k in range(6)} for _ in range(2)
    )
    one, other = compare(first, second), compare(second, first)
    assert one.ratio is not None
    assert other.ratio == pytest.approx(1 / one.ratio)
    assert (one.wins, one.losses) == (other.losses, other.wins)
    assert one.p_value == other.p_value
    assert one.these is not None
    assert other.these is not None
    assert other.these.low == pytest.approx(1 / one.these.high, rel=0.02)


def test_ties_are_neither_won_nor_lost() -> None:
    found = compare({"p": {0: 0.1 + 0.2, 1: 1.0}}, {"p": {0: 0.3, 1: 2.0}})
    assert (found.wins, found.ties, found.losses) == (1, 1, 0)


def test_who_fails_alone_loses_and_the_pair_has_no_ratio() -> None:
    first: Values = {"p": {0: None, 1: 1.0, 2: float("inf"), 3: 1.0}}
    second: Values = {"p": {0: 5.0, 1: None, 2: float("nan"), 3: 2.0}}
    found = compare(first, second)
    assert (found.wins, found.ties, found.losses) == (2, 1, 1)
    assert (found.problems[0].failed, found.problems[0].failed_other) == (2, 2)
    assert found.problems[0].ratios == (0.5,)
    assert "3 of 4 pairs have no ratio and count as won, lost or tied" in found.notes


def test_an_error_of_zero_wins_without_a_ratio() -> None:
    found = compare({"p": {0: 0.0, 1: 0.0}}, {"p": {0: 1.0, 1: 0.0}})
    assert (found.wins, found.ties, found.ratio) == (1, 1, None)


def test_negative_values_are_refused() -> None:
    with pytest.raises(ValueError, match="not negative, found -1"):
        compare({"p": {0: -1.0}}, {"p": {0: 1.0}})


def test_seeds_and_problems_of_one_method_alone_are_listed_and_not_used() -> None:
    found = compare({"p": {0: 1.0, 7: 1.0}, "q": {0: 1.0}}, {"p": {0: 2.0, 8: 1.0}})
    assert found.pairs == 1
    assert (found.problems[0].unpaired, found.problems[0].unpaired_other) == (("7",), ("8",))
    assert "unpaired on p: 7, 8" in found.notes
    assert "unpaired on q: 0" in found.notes
    assert list(found.without) == ["p"]


def test_nothing_in_common_is_said() -> None:
    found = compare({"p": {0: 1.0}}, {"q": {0: 1.0}})
    assert (found.ratio, found.these, found.p_value) == (None, None, None)
    assert "the methods have no problem and seed in common" in found.notes[0]


def test_too_few_pairs_have_no_interval_and_no_test_and_it_is_said() -> None:
    found = compare(constant(1.0, seeds=1), constant(2.0, seeds=1))
    assert (found.these, found.like_these, found.p_value) == (None, None, None)
    assert len(found.notes) == 2
    assert all("too few pairs" in note for note in found.notes)


def test_one_problem_with_too_few_pairs_is_enough_to_have_no_interval() -> None:
    first, second = constant(1.0), constant(2.0)
    del first["p3"][0]
    assert compare(first, second).these is None


def test_an_interval_for_problems_like_these_takes_five_problems() -> None:
    found = compare(constant(1.0, problems=4), constant(2.0, problems=4))
    assert found.these is not None
    assert found.like_these is None
    assert any("too few problems" in note for note in found.notes)
    assert compare(constant(1.0), constant(2.0)).like_these is not None


def test_without_any_spread_the_interval_is_the_ratio() -> None:
    found = compare(constant(1.0), constant(2.0))
    assert found.these is not None
    assert (found.these.low, found.these.high) == pytest.approx((0.5, 0.5))


def test_problems_that_differ_widen_the_interval_for_problems_like_these_alone() -> None:
    first = {f"p{k}": dict.fromkeys(range(3), 2.0**k) for k in range(5)}
    found = compare(first, constant(4.0))
    assert found.these is not None
    assert found.like_these is not None
    assert (found.these.low, found.these.high) == pytest.approx((1.0, 1.0))
    assert found.like_these.low < 0.6
    assert found.like_these.high > 1.6


def test_the_same_values_give_the_same_interval() -> None:
    logs = np.random.default_rng(5).standard_normal((5, 4)).tolist()
    assert interval(logs) == interval(logs)
    assert interval(logs, of_problems=True) == interval(logs, of_problems=True)


@pytest.mark.parametrize(
    "values", [(8.0, 1.0, 2.0), (3.0, 1.0), (1.0, 9.0, 4.0, 16.0), (5.0, 1.0, 2.0, 7.0, 3.0)]
)
@pytest.mark.parametrize("level", [0.35, 0.65, 0.95])
def test_the_ends_of_an_interval_are_those_of_all_possible_resamples(
    values: tuple[float, ...], level: float
) -> None:
    logs = [log(value) for value in values]
    medians = [median(drawn) for drawn in product(logs, repeat=len(logs))]
    # What is drawn is a sample of all resamples: its ends are theirs within two hundredths of them.
    shares = [(1 + sign * level) / 2 + move for sign in (-1, 1) for move in (-0.02, 0.02)]
    least_low, most_low, least_high, most_high = np.exp(
        np.quantile(medians, np.clip(shares, 0, 1), method="inverted_cdf")
    )
    found = interval([logs], level)
    assert least_low - 1e-9 <= found.low <= most_low + 1e-9
    assert least_high - 1e-9 <= found.high <= most_high + 1e-9


@pytest.mark.parametrize(("problems", "seeds"), [(1, 10), (5, 3), (5, 10)])
def test_intervals_for_these_problems_cover_the_ratio_about_as_often_as_they_say(
    problems: int, seeds: int
) -> None:
    centres = np.arange(problems) - (problems - 1) / 2

    def drawn(generator: np.random.Generator) -> list[list[float]]:
        noise = generator.standard_normal((problems, seeds))
        logs: list[list[float]] = (0.3 + centres[:, None] + 0.5 * noise).tolist()
        return logs

    assert 0.88 <= coverage(drawn, of_problems=False) <= 1.0


def test_intervals_for_problems_like_these_cover_their_mean_about_as_often_as_they_say() -> None:
    def drawn(generator: np.random.Generator) -> list[list[float]]:
        centres = 0.3 + 0.5 * generator.standard_normal((10, 1))
        logs: list[list[float]] = (centres + 0.5 * generator.standard_normal((10, 5))).tolist()
        return logs

    assert 0.88 <= coverage(drawn, of_problems=True) <= 1.0
    assert coverage(drawn, of_problems=False) < 0.88


def coverage(drawn: object, *, of_problems: bool, trials: int = 200) -> float:
    generator = np.random.default_rng(11)
    assert callable(drawn)
    found = [interval(drawn(generator), of_problems=of_problems) for _ in range(trials)]
    return sum(each.low <= exp(0.3) <= each.high for each in found) / trials


@pytest.mark.parametrize(("wins", "losses"), [(6, 0), (0, 6), (7, 2), (10, 10), (31, 19)])
def test_the_sign_test_is_the_exact_binomial_one(wins: int, losses: int) -> None:
    assert sign_test(wins, losses) == pytest.approx(binomtest(wins, wins + losses).pvalue)


def test_six_wins_of_six_is_the_least_that_a_sign_test_can_tell() -> None:
    assert sign_test(6, 0) == pytest.approx(2 / 64)
    assert compare(constant(1.0, seeds=1, problems=6), constant(2.0, seeds=1, problems=6)).p_value == 2 / 64
