"""Measures how often intervals of a comparison hold the ratio that they are about.

    python benchmarks/bench_statistics.py [--trials 1000]

Log-ratios are drawn from normal distributions, whose mean, the true ratio, is known: 0.5 is their standard deviation
between seeds of a problem. For these problems, problems lie 0.5 apart; for problems like these, they are drawn with
that standard deviation, too. Nominal coverage is 95 %.
"""

from __future__ import annotations

from math import exp

import numpy as np
from measuring import Table, command_line

from sharp.experiments.statistics import interval

SHAPES = ((1, 6), (1, 10), (2, 3), (3, 3), (5, 3), (5, 5), (5, 10), (10, 3), (10, 10))
LEAST_PROBLEMS = 5
TRUE, SPREAD = 0.3, 0.5


def main(trials: int = 1000) -> None:
    """Print the table."""
    table = Table("problems", "seeds", "these problems:.1%", "problems like these:.1%")
    for problems, seeds in SHAPES:
        these = coverage(problems, seeds, trials, of_problems=False)
        like = coverage(problems, seeds, trials, of_problems=True) if problems >= LEAST_PROBLEMS else None
        table.row(problems, seeds, these, like)


def coverage(problems: int, seeds: int, trials: int, *, of_problems: bool) -> float:
    """Return the share of intervals that hold the true ratio."""
    generator = np.random.default_rng(1)
    fixed = SPREAD * (np.arange(problems) - (problems - 1) / 2)
    held = 0
    for _ in range(trials):
        centres = SPREAD * generator.standard_normal(problems) if of_problems else fixed
        noise = SPREAD * generator.standard_normal((problems, seeds))
        found = interval((TRUE + centres[:, None] + noise).tolist(), of_problems=of_problems)
        held += found.low <= exp(TRUE) <= found.high
    return held / trials


if __name__ == "__main__":
    command_line(main)
