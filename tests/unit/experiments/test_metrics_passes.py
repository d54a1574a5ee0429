"""Pass@k, its interval and the paired test, against enumeration, textbook values and SciPy."""

from __future__ import annotations

from itertools import combinations

import pytest
from scipy.stats import binomtest

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.benchmark_report import mcnemar_test, pass_at_k


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


def test_the_paired_test_asks_only_the_cases_that_one_alone_solved() -> None:
    assert mcnemar_test(12, 3) == mcnemar_test(3, 12) == pytest.approx(binomtest(3, 15).pvalue)
    assert mcnemar_test(0, 0) == 1
    assert mcnemar_test(10, 6) > 0.4  # 90 against 86 of a hundred says nothing
