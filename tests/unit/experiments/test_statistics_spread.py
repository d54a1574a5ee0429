"""Spread, geometric means and evaluations to reach an error, against values worked out by hand."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from sharp.experiments.statistics import (
    EvaluationsToTarget,
    QuartileSummary,
    compare,
    evaluations_to_reach,
    evaluations_to_target,
    quartile_summary,
)


def test_the_spread_of_five_repeats() -> None:
    assert quartile_summary([5.0, 1.0, 4.0, 2.0, 3.0]) == QuartileSummary(5, 0, 1.0, 2.0, 3.0, 4.0, 5.0)


def test_quartiles_lie_between_neighbours_as_numpy_has_them() -> None:
    values = [0.3, 7.0, 1.5, 2.0, 11.0, 4.0]
    found = quartile_summary(values)
    expected = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    assert [found.least, found.lower, found.median, found.upper, found.most] == pytest.approx(
        expected.tolist()
    )


def test_a_single_repeat_is_its_own_spread() -> None:
    assert quartile_summary([0.25]) == QuartileSummary(1, 0, 0.25, 0.25, 0.25, 0.25, 0.25)


def test_failures_count_as_the_worst_repeats_and_are_not_left_out() -> None:
    assert quartile_summary([2.0, None, 1.0, nan, 3.0]) == QuartileSummary(5, 2, 1.0, 2.0, 3.0, inf, inf)


def test_the_median_of_mostly_failed_repeats_is_a_failure() -> None:
    found = quartile_summary([1.0, None, inf, 2.0])
    assert (found.count, found.failed, found.least, found.median) == (4, 2, 1.0, inf)


def test_no_repeats_have_no_spread() -> None:
    with pytest.raises(ValueError, match="at least one repeat"):
        quartile_summary([])


def test_one_problem_can_make_all_the_gain_and_one_without_a_ratio_is_in_no_mean() -> None:
    first = {"advection": {0: 1.0}, "burgers": {0: 1.0}, "reaction-diffusion": {0: 1e-3}, "darcy": {0: None}}
    found = compare(first, {problem: {0: 1.0} for problem in first})
    assert found.ratio == pytest.approx(0.1)
    assert found.without == pytest.approx(
        {"advection": 1e-3**0.5, "burgers": 1e-3**0.5, "reaction-diffusion": 1.0}
    )


def test_evaluations_are_counted_from_one_and_failures_count() -> None:
    course = (None, 0.5, 0.5, 0.2, 0.1)
    assert evaluations_to_reach(course, 0.5) == 2
    assert evaluations_to_reach(course, 0.3) == 4
    assert evaluations_to_reach(course, 0.05) is None
    assert evaluations_to_reach((), 1.0) is None


def test_savings_are_counts_of_evaluations() -> None:
    best_of_eight = (0.9, 0.9, 0.4, 0.4, 0.4, 0.4, 0.4, 0.4)
    found = evaluations_to_target((None, 0.4, 0.3), best_of_eight)
    assert found == EvaluationsToTarget(target=0.4, needed=2, used=3, baseline_needed=3, baseline_used=8)


def test_what_is_never_reached_saves_nothing() -> None:
    found = evaluations_to_target((0.9, 0.8), (0.5,))
    assert found is not None
    assert found.needed is None


def test_a_baseline_that_never_ran_sets_no_target() -> None:
    assert evaluations_to_target((0.1,), (None, None)) is None
    assert evaluations_to_target((0.1,), ()) is None
