"""The sign test: does one of two methods win more often than a coin would?"""

from __future__ import annotations

from math import comb

LEAST_SIGNS = 6
"""Pairs that are no tie: with fewer, not even winning all of them has a p-value below 0.05."""


def sign_test(wins: int, losses: int) -> float:
    """Return the two-sided p-value of the exact sign test; ties are left out beforehand.

    The probability that a fair coin, thrown wins + losses times, comes out at least as uneven (Dixon and Mood, Journal
    of the American Statistical Association 41, 1946). It is `scipy.stats.binomtest` at one half, which takes longer to
    load than a table of a sweep to write.
    """
    thrown, fewer = wins + losses, min(wins, losses)
    as_uneven = sum(comb(thrown, heads) for heads in range(fewer + 1))
    return float(min(1.0, 2 * as_uneven / 2**thrown))
