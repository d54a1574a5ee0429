"""From frames to charts: curves of best errors with their range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from math import isfinite
from statistics import median

from pandas import DataFrame

from sharp.document import Curve, CurvePoint
from sharp.experiments.statistics.spread import quartile_summary


def best_error_curve(name: str, series: Sequence[Sequence[float | None]]) -> Curve:
    """Return the median of best results so far with their range, from where every run has one.

    A run that has ended keeps what it has.
    """
    points = []
    best: list[float | None] = [None] * len(series)
    for number, now in enumerate(zip_longest(*series), start=1):
        best = [after if after is not None else before for before, after in zip(best, now, strict=True)]
        known = [value for value in best if value is not None]
        if known and len(known) == len(series):
            points.append(CurvePoint(number, median(known), min(known), max(known)))
    return Curve(name, tuple(points))


def spread_point(x: float, values: Iterable[float | None]) -> Iterator[CurvePoint]:
    """Yield the median, if as many as that have a value, and the range of those that have one."""
    known = list(values)
    over = quartile_summary(known) if known else None
    if over is not None and isfinite(over.median):
        most = max(value for value in known if value is not None and isfinite(value))
        yield CurvePoint(x, over.median, over.least, most)


def common_floor(runs: DataFrame) -> float | None:
    """Return the data set's own error, None if runs have different ones."""
    floors = runs["data_error"].unique()
    return float(floors[0]) if len(floors) == 1 and floors[0] == floors[0] else None
