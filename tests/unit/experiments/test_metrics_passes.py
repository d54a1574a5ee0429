"""Pass@k, its interval and the paired test, against enumeration, textbook values and SciPy."""

from __future__ import annotations

from itertools import combinations

import pytest
from scipy.stats import binomtest

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.passes import compare_passes, mean_pass_at_k, pass_at_k


@pytest.mark.parametrize("passed", range(6))
@pytest.mark.parametrize("k", range(1, 6))
def test_pass_at_k_is_the_share_of_choices_of_k_runs_with_one_that_passed(passed: int, k: int) -> None:
    runs = [True] * passed + [False] * (5 - passed)
    choices = [any(chosen) for chosen in combinations(runs, k)]
    assert pass_at_k(5, passed, k) == pytest.approx(sum(choices) / len(choices))


@pytest.mark.parametrize(("runs", "passed", "k"), [(3, 2, 4), (3, 2, 0), (3, 4, 1), (3, -1, 1), (0, 0, 1)])
def test_pass_at_k_takes_at_least_k_runs(runs: int, passed: int, k: int) -> None:
    with pytest.raises(DataError):
        pass_at_k(runs, passed, k)


def test_every_case_counts_the_same_however_often_it_was_run() -> None:
    outcomes = {"heat": [True, False], "wave": [False] * 10, "poisson": [True]}
    assert mean_pass_at_k(outcomes, 1) == pytest.approx((0.5 + 0 + 1) / 3)


def test_a_case_with_too_few_runs_is_named() -> None:
    with pytest.raises(DataError, match="case 'wave': expected at least 2 runs, found 1"):
        mean_pass_at_k({"heat": [True, False], "wave": [True]}, 2)
    with pytest.raises(DataError, match="at least one case"):
        mean_pass_at_k({}, 1)


def outcomes(both: int, first: int, second: int, neither: int) -> tuple[dict[int, bool], dict[int, bool]]:
    pairs = (
        [(True, True)] * both
        + [(True, False)] * first
        + [(False, True)] * second
        + [(False, False)] * neither
    )
    return {i: pair[0] for i, pair in enumerate(pairs)}, {i: pair[1] for i, pair in enumerate(pairs)}


def test_the_paired_test_asks_only_the_cases_that_one_alone_solved() -> None:
    found = compare_passes(*outcomes(80, 12, 3, 5))
    assert (found.both, found.first_only, found.second_only, found.neither) == (80, 12, 3, 5)
    assert found.p_value == pytest.approx(binomtest(3, 15).pvalue)
    assert found.p_value == compare_passes(*outcomes(0, 12, 3, 0)).p_value


def test_ninety_against_eighty_six_of_a_hundred_says_nothing() -> None:
    assert compare_passes(*outcomes(80, 10, 6, 4)).p_value > 0.4


def test_the_paired_test_is_symmetric() -> None:
    first, second = outcomes(5, 7, 2, 1)
    one, other = compare_passes(first, second), compare_passes(second, first)
    assert (one.first_only, one.p_value) == (other.second_only, other.p_value)


def test_cases_of_one_method_alone_are_not_used() -> None:
    found = compare_passes({"a": True, "b": False, "c": True}, {"a": False, "d": True})
    assert (found.both, found.first_only, found.second_only, found.neither, found.p_value) == (
        0,
        1,
        0,
        0,
        1.0,
    )
