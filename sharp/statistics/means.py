"""Geometric means over problems, and what becomes of them without each problem (requirement 0.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import exp, isfinite, log
from statistics import fmean


@dataclass(frozen=True)
class GeometricMeans:
    """The geometric mean over all problems (`overall`), and by problem that over the others (`without`).

    None where no problem is left. `undefined` names the problems that had no value and are in none of the means.
    """

    overall: float | None
    without: Mapping[str, float | None]
    undefined: tuple[str, ...] = ()


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of positive numbers: that of ratios does not depend on which way they are taken.

    See Fleming and Wallace, Communications of the ACM 29, 1986. Raises ValueError where there is no value, or one that
    is not positive and finite.
    """
    numbers = list(values)
    if not numbers:
        raise ValueError("expected at least one value")
    for number in numbers:
        if not (isfinite(number) and number > 0):
            raise ValueError(f"expected positive, finite values, found {number}")
    return exp(fmean(map(log, numbers)))


def without_each(values: Mapping[str, float | None]) -> GeometricMeans:
    """Return the geometric mean of values (ratios, mostly) by problem, over all and with each left out.

    A problem without a value (None) is named, and left out of all. Raises ValueError as `geometric_mean` does.
    """
    known = {problem: value for problem, value in values.items() if value is not None}
    others = {name: [value for other, value in known.items() if other != name] for name in known}
    return GeometricMeans(
        _mean_of(list(known.values())),
        {name: _mean_of(rest) for name, rest in others.items()},
        tuple(problem for problem in values if problem not in known),
    )


def _mean_of(values: list[float]) -> float | None:
    return geometric_mean(values) if values else None
