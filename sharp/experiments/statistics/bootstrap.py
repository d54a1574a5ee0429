"""Confidence intervals for ratios over problems and seeds, by a hierarchical bootstrap.

The statistic is that of the comparison: the mean over problems of the median log-ratio over seeds. A resample draws,
with replacement, as many seeds on each problem as there are; where the problems are a sample themselves, it first draws
as many problems, with replacement, and then seeds for each of those drawn. The interval lies between the percentiles of
the statistic over all resamples. Its seed is fixed, so the same values give the same interval.

Resampling within problems is stratified resampling as Agarwal et al. (Deep Reinforcement Learning at the Edge of the
Statistical Precipice, NeurIPS 2021) recommend for a few runs on each of several tasks; resampling in two steps is in
Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8. Percentile intervals of so few values
are too narrow; docs/statistics.md has the coverage that simulations found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RESAMPLES = 4000
_SEED = 20220511


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a ratio; `level` is its nominal coverage."""

    low: float
    high: float
    level: float


def interval(logs: Sequence[Sequence[float]], level: float = 0.95, *, of_problems: bool = False) -> Interval:
    """Return the interval of the overall ratio, from the log-ratios of each problem (natural logarithms).

    With `of_problems` the problems are resampled as well, and the interval is for problems like these; without, it is
    for these problems and other seeds. Raises ValueError where a problem has no log-ratio, or there is no problem.
    """
    if not logs or not all(map(len, logs)):
        raise ValueError("expected at least one log-ratio on every problem, and at least one problem")
    generator = np.random.default_rng(_SEED)
    problems = np.arange(len(logs))
    drawn = np.broadcast_to(problems, (RESAMPLES, len(logs)))
    if of_problems:
        drawn = generator.choice(problems, size=drawn.shape)
    means = _medians(logs, drawn, generator).mean(axis=1)
    low, high = np.exp(np.quantile(means, [(1 - level) / 2, (1 + level) / 2]))
    return Interval(float(low), float(high), level)


def _medians(logs: Sequence[Sequence[float]], drawn: NDArray[Any], generator: np.random.Generator) -> Array:
    """Return for each problem drawn [resamples, problems] the median over seeds drawn for it."""
    medians = np.empty(drawn.shape)
    for problem, values in enumerate(logs):
        chosen = drawn == problem
        resamples = generator.choice(values, size=(np.count_nonzero(chosen), len(values)))
        medians[chosen] = np.median(resamples, axis=1)
    return medians
