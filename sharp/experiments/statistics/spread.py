"""The spread of repeats, failures included."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite


@dataclass(frozen=True)
class QuartileSummary:
    """Repeats of one measurement, in the unit of the values.

    `count` is the number of repeats, `failed` how many of them have no value. These are not left out: they stand
    above all others, as +inf, so that the median of five runs of which three failed is +inf, and says so.
    """

    count: int
    failed: int
    least: float
    lower: float
    median: float
    upper: float
    most: float


def quartile_summary(values: Iterable[float | None]) -> QuartileSummary:
    """Return the spread of repeats; what is None or not finite has failed.

    Quartiles interpolate between neighbours (type 7 of Hyndman and Fan, The American Statistician 50, 1996, the default
    of NumPy and R); between a value and a failure lies a failure. Raises ValueError without any repeat.
    """
    known = [inf if value is None or not isfinite(value) else value for value in values]
    if not known:
        raise ValueError("expected at least one repeat")
    known.sort()
    least, lower, median, upper, most = (_quantile(known, share) for share in (0, 0.25, 0.5, 0.75, 1))
    return QuartileSummary(len(known), known.count(inf), least, lower, median, upper, most)


def _quantile(ordered: Sequence[float], share: float) -> float:
    below, rest = divmod((len(ordered) - 1) * share, 1)
    first = ordered[int(below)]
    if rest == 0:
        return first
    second = ordered[int(below) + 1]
    return first + rest * (second - first) if isfinite(second) else inf
