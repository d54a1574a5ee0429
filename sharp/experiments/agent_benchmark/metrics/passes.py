"""How often cases are solved: Pass@k, and two methods in pairs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from math import comb
from statistics import fmean
from typing import TypeVar

from scipy.stats import binomtest

from sharp.errors import DataError

Case = TypeVar("Case", bound=Hashable)


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """Return the unbiased estimate of the probability that one of k runs of a case passes.

    1 - C(n - c, k)/C(n, k) for c of n runs (Chen et al., Evaluating Large Language Models Trained on Code, arXiv
    2107.03374, eq. 1). Raises `DataError` unless 0 <= passed <= runs and 1 <= k <= runs: fewer runs than k have no
    such estimate.
    """
    if not 0 <= passed <= runs:
        raise DataError(f"expected from 0 to {runs} runs that passed, found {passed}")
    if not 1 <= k <= runs:
        raise DataError(f"Pass@{k}: expected k from 1 to the number of runs of a case, {runs}")
    return 1 - comb(runs - passed, k) / comb(runs, k)


def mean_pass_at_k(outcomes: Mapping[str, Collection[bool]], k: int) -> float:
    """Return the mean of Pass@k over cases, each with the outcomes of its runs; every case counts the same.

    Raises `DataError` without cases, and naming a case with fewer than k runs.
    """
    if not outcomes:
        raise DataError(f"Pass@{k}: expected at least one case")
    for case, runs in outcomes.items():
        if len(runs) < k:
            raise DataError(f"Pass@{k}, case '{case}': expected at least {k} runs, found {len(runs)}")
    return fmean(pass_at_k(len(runs), sum(runs), k) for runs in outcomes.values())


@dataclass(frozen=True)
class PairedPasses:
    """How many cases two methods both solved, one alone, and neither; `p_value` is that of McNemar's exact test."""

    both: int
    first_only: int
    second_only: int
    neither: int
    p_value: float


def compare_passes(first: Mapping[Case, bool], second: Mapping[Case, bool]) -> PairedPasses:
    """Compare two methods by the outcome of one run of each case.

    McNemar's test (Psychometrika 12, 1947) asks only the cases that one of the two alone solved, and in its exact form
    is the sign test of these. Runs of one case are no independent pairs: give one of each, or their majority.
    """
    pairs = [(first[case], second[case]) for case in first if case in second]
    ones, twos = pairs.count((True, False)), pairs.count((False, True))
    return PairedPasses(
        pairs.count((True, True)),
        ones,
        twos,
        pairs.count((False, False)),
        float(binomtest(ones, ones + twos).pvalue) if ones + twos else 1.0,
    )
