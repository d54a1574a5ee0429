"""A clock that moves only when a test, or what it measures, moves it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Clock:
    """Seconds; every look at it takes `tick` of them."""

    now: float = 0.0
    tick: float = 0.0

    def __call__(self) -> float:
        self.now += self.tick
        return self.now
