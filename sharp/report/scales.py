"""From values to places on paper: linear and logarithmic scales, their ticks, and labels kept apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10


@dataclass(frozen=True)
class Scale:
    """Maps `low` to `start` and `high` to `end`, evenly."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 6) -> list[float]:
        """Return at most so many round values within the scale, evenly spaced."""
        step = _round_up((self.high - self.low) / most)
        first = ceil(self.low / step - 1e-9)
        values = [index * step for index in range(first, first + most + 2)]
        return [value for value in values if value <= self.high + step * 1e-9]


@dataclass(frozen=True)
class LogScale:
    """Maps positive values by their logarithms; `low` and `high` are powers of ten.

    What lies outside, zero included, is put at the nearer end.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        power = log10(value) if value > 0 else self.low
        share = (min(max(power, self.low), self.high) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int = 7) -> list[float]:
        """Return powers of ten, with 2 and 5 between them where they are few, or every so many where many."""
        decades = self.high - self.low
        step = max(1, ceil(decades / most))
        digits = (1, 2, 5) if decades < most / 3 else (1,)
        powers = range(floor(self.low) // step * step, ceil(self.high) + 1, step)
        values = [digit * 10.0**power for power in powers for digit in digits]
        return [value for value in values if self.low - 1e-9 <= log10(value) <= self.high + 1e-9]


def log_scale(values: Sequence[float], start: float, end: float) -> LogScale:
    """Return a logarithmic scale with some room around all positive values but absurdly large or small ones."""
    powers = [log10(min(max(value, 1e-30), 1e30)) for value in values if value > 0] or [0.0]
    low, high = min(powers), max(powers)
    room = max(0.25, (high - low) * 0.06)
    return LogScale(low - room, high + room, start, end)


def linear_scale(values: Sequence[float], start: float, end: float) -> Scale:
    """Return a linear scale with a little room around all values."""
    low, high = min(values), max(values)
    room = (high - low) * 0.05 or abs(high) * 0.05 or 1.0
    return Scale(low - room, high + room, start, end)


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Return the places moved as little as needed to be at least `gap` apart and within bounds, in their order."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = [min(max(places[index], low), high) for index in order]
    for before, after in pairwise(range(len(moved))):
        moved[after] = max(moved[after], moved[before] + gap)
    for index in reversed(range(len(moved))):
        ceiling = high if index == len(moved) - 1 else moved[index + 1] - gap
        moved[index] = min(moved[index], ceiling)
    result = [0.0] * len(places)
    for index, place in zip(order, moved, strict=True):
        result[index] = place
    return result


def _round_up(step: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(digit * power for digit in (1, 2, 5, 10) if digit * power >= step * (1 - 1e-9))
