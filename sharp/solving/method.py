"""A method of solution, as the driver sees it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Protocol

from sharp.solving.solution import Solution
from sharp.solving.system import System


class OutOfTime(Exception):
    """The limit of time was reached before the solution was there."""


class NotSolved(Exception):
    """The method failed on this problem at this resolution: no convergence, a singular matrix, a blow-up."""


@dataclass(frozen=True)
class Deadline:
    """A point in time, by the monotonic clock, after which work is given up."""

    at: float

    @classmethod
    def within(cls, seconds: float) -> Deadline:
        """Return the deadline that is some seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """The seconds that are left, negative after the deadline."""
        return self.at - time.monotonic()

    def check(self) -> None:
        """Raise `OutOfTime` after the deadline."""
        if self.left < 0:
            raise OutOfTime("the limit of time was reached")


class Method(Protocol):
    """Solves systems of some kinds, at a resolution that can be raised."""

    @property
    def name(self) -> str:
        """How users and reports call it."""
        ...

    def refusal(self, system: System) -> str | None:
        """Return in a sentence why the method cannot solve a system, or None where it can."""
        ...

    def resolutions(self, system: System) -> tuple[int, ...]:
        """Return the resolutions worth trying, ascending; the cost rises with each."""
        ...

    def solve(self, system: System, resolution: int, accuracy: float, deadline: Deadline) -> Solution:
        """Return the solution at a resolution, advanced in time with errors well below `accuracy`.

        Raises `NotSolved` and `OutOfTime`.
        """
        ...
