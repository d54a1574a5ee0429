"""How often cases are solved: Pass@k, its confidence interval, and two methods in pairs."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from math import comb, sqrt
from statistics import NormalDist, fmean
from typing import TypeVar

from sharp.errors import DataError
from sharp.statistics.signs import sign_test

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
class Proportion:
    """A share of successes with its confidence interval; `level` is the nominal coverage."""

    share: float
    low: float
    high: float
    level: float


def wilson(successes: int, trials: int, level: float = 0.95) -> Proportion:
    """Return a share with its score interval (Wilson, Journal of the American Statistical Association 22, 1927).

    Trials are independent: one run of each case. Raises `DataError` unless 0 <= successes <= trials, trials >= 1.
    """
    if not 0 <= successes <= trials or trials < 1:
        raise DataError(f"expected 0 <= successes <= trials and a trial, found {successes} of {trials}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    share = successes / trials
    centre = (share + z**2 / (2 * trials)) / (1 + z**2 / trials)
    half = z / (1 + z**2 / trials) * sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    # The ends are exact where nothing or everything succeeds, and rounding would put them beyond.
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == trials else centre + half
    return Proportion(share, low, high, level)


@dataclass(frozen=True)
class PairedPasses:
    """Two methods on the same cases: how many both solved, one alone, and neither.

    `p_value` is that of the exact McNemar test. `unpaired` are the cases that only one of them has.
    """

    both: int
    first_only: int
    second_only: int
    neither: int
    unpaired: tuple[str, ...]
    p_value: float


def compare_passes(first: Mapping[Case, bool], second: Mapping[Case, bool]) -> PairedPasses:
    """Compare two methods by the outcome of one run of each case.

    McNemar's test (Psychometrika 12, 1947) asks only the cases that one of the two alone solved, and in its exact form
    is the sign test of these. Runs of one case are no independent pairs: give one of each, or their majority.
    """
    cases = [case for case in first if case in second]
    pairs = [(first[case], second[case]) for case in cases]
    ones, twos = pairs.count((True, False)), pairs.count((False, True))
    return PairedPasses(
        pairs.count((True, True)),
        ones,
        twos,
        pairs.count((False, False)),
        tuple(str(case) for case in {**first, **second} if case not in cases),
        sign_test(ones, twos),
    )
