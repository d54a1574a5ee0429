"""Spread, geometric means and evaluations to reach an error, against values worked out by hand."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from sharp.statistics.means import geometric_mean, without_each
from sharp.statistics.reaching import Reaching, evaluations_to_reach, reaching
from sharp.statistics.spread import Spread, spread


def test_the_spread_of_five_repeats() -> None:
    assert spread([5.0, 1.0, 4.0, 2.0, 3.0]) == Spread(5, 0, 1.0, 2.0, 3.0, 4.0, 5.0)


def test_quartiles_lie_between_neighbours_as_numpy_has_them() -> None:
    values = [0.3, 7.0, 1.5, 2.0, 11.0, 4.0]
    found = spread(values)
    expected = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    assert [found.least, found.lower, found.median, found.upper, found.most] == pytest.approx(
        expected.tolist()
    )


def test_a_single_repeat_is_its_own_spread() -> None:
    assert spread([0.25]) == Spread(1, 0, 0.25, 0.25, 0.25, 0.25, 0.25)


def test_failures_count_as_the_worst_repeats_and_are_not_left_out() -> None:
    assert spread([2.0, None, 1.0, nan, 3.0]) == Spread(5, 2, 1.0, 2.0, 3.0, inf, inf)


def test_the_median_of_mostly_failed_repeats_is_a_failure() -> None:
    found = spread([1.0, None, inf, 2.0])
    assert (found.count, found.failed, found.least, found.median) == (4, 2, 1.0, inf)


def test_no_repeats_have_no_spread() -> None:
    with pytest.raises(ValueError, match="at least one repeat"):
        spread([])


def test_the_geometric_mean_of_a_ratio_and_its_inverse_is_one() -> None:
    assert geometric_mean([4.0, 0.25]) == pytest.approx(1.0)
    assert geometric_mean([1.0, 10.0, 100.0]) == pytest.approx(10.0)


@pytest.mark.parametrize("wrong", [0.0, -1.0, inf, nan])
def test_a_value_without_a_logarithm_has_no_geometric_mean(wrong: float) -> None:
    with pytest.raises(ValueError, match="positive, finite"):
        geometric_mean([1.0, wrong])


def test_one_problem_can_make_all_the_gain() -> None:
    means = without_each({"advection": 1.0, "burgers": 1.0, "reaction-diffusion": 1e-3})
    assert means.overall == pytest.approx(0.1)
    assert means.without == pytest.approx(
        {"advection": 1e-3**0.5, "burgers": 1e-3**0.5, "reaction-diffusion": 1.0}
    )


def test_a_problem_without_a_ratio_is_named_and_in_no_mean() -> None:
    means = without_each({"burgers": 0.5, "darcy": None})
    assert (means.overall, dict(means.without), means.undefined) == (0.5, {"burgers": None}, ("darcy",))
    assert without_each({}).overall is None


def test_evaluations_are_counted_from_one_and_failures_count() -> None:
    course = (None, 0.5, 0.5, 0.2, 0.1)
    assert evaluations_to_reach(course, 0.5) == 2
    assert evaluations_to_reach(course, 0.3) == 4
    assert evaluations_to_reach(course, 0.05) is None
    assert evaluations_to_reach((), 1.0) is None


def test_savings_are_counts_of_evaluations() -> None:
    best_of_eight = (0.9, 0.9, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
    found = reaching((None, 0.4, 0.3), best_of_eight)
    assert found == Reaching(target=0.4, needed=2, used=3, baseline_needed=3, baseline_used=8)
    assert found.saved == 6


def test_what_is_never_reached_saves_nothing() -> None:
    found = reaching((0.9, 0.8), (0.5,))
    assert found is not None
    assert (found.needed, found.saved) == (None, None)


def test_a_baseline_that_never_ran_sets_no_target() -> None:
    assert reaching((0.1,), (None, None)) is None
    assert reaching((0.1,), ()) is None
