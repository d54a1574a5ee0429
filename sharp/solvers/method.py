"""A method of solution, as the driver sees it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from sharp.plugins import load_plugin, load_plugins
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.system import FirstOrderSystem


class TimeLimitExceeded(Exception):
    """The limit of time was reached before the solution was there."""


class SolverFailed(Exception):
    """The method failed on this problem at this resolution: no convergence, a singular matrix, a blow-up.

    `reached` is the time beyond which a solution could not be followed, None where that is not what failed.
    """

    def __init__(self, message: str, reached: float | None = None) -> None:
        super().__init__(message)
        self.reached = reached


# What a limit of time counts: seconds on the wall, or those of processors that all threads of this process had, which
# do not depend on what else the machine does.
ClockName = Literal["wall", "cpu"]
CLOCKS: Mapping[ClockName, Callable[[], float]] = {"wall": time.monotonic, "cpu": time.process_time}


@dataclass(frozen=True)
class Deadline:
    """A point in time, by a clock that counts seconds, after which work is given up."""

    at: float
    clock: Callable[[], float] = time.monotonic

    @classmethod
    def within(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Deadline:
        """Return the deadline that is some seconds from now."""
        return cls(clock() + seconds, clock)

    def share(self, part: float) -> Deadline:
        """Return the deadline after a part of the time that is left."""
        return self.at_most(part * self.remaining_s)

    def at_most(self, seconds: float) -> Deadline:
        """Return the deadline that is some seconds from now, or this one where that is earlier."""
        return Deadline.within(min(seconds, self.remaining_s), self.clock)

    @property
    def remaining_s(self) -> float:
        """The seconds that are left, negative after the deadline."""
        return self.at - self.clock()

    def check(self, needed: float = 0.0) -> None:
        """Raise `TimeLimitExceeded` after the deadline, or if a step of so many seconds cannot end before it."""
        left = self.remaining_s
        if left < 0:
            raise TimeLimitExceeded("the limit of time was reached")
        if left < needed:
            raise TimeLimitExceeded(f"its next step {too_long(needed, left)}")


NEVER = Deadline(math.inf)


@dataclass(frozen=True)
class Activity:
    """What is done from now on: the seconds that it takes to judge by what came before, and those of the limit.

    `expected_s` is None where nothing like it has been done before; `remaining_s` is what the limit leaves for
    everything, negative after it.
    """

    text: str
    remaining_s: float
    expected_s: float | None = None


def too_long(needed: float, left: float) -> str:
    """Return in words that something needs more seconds than are left."""
    about, there = (
        f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.2g}" for seconds in (needed, max(left, 0.0))
    )
    return f"would take about {about} s of the {there} s that are left"


class NumericalMethod(Protocol):
    """Solves systems of some kinds, at a resolution that can be raised; users and reports call it by its name."""

    name: str

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return in a sentence why the method cannot solve a system, or None where it can."""
        ...

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return the resolutions worth trying, ascending; the cost rises with each."""
        ...

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution at a resolution, advanced in time with errors well below `accuracy`.

        Raises `SolverFailed` and `TimeLimitExceeded`.
        """
        ...


# How a method steps in time where it can do so in several ways: implicit collocation of high order at Radau points, or
# Runge-Kutta methods, explicit of order 8 where few steps are stable and diagonally implicit of order 4 elsewhere.
Integrator = Literal["radau", "runge-kutta"]


class Stepping:
    """What methods inherit whose integrator in time can be exchanged."""

    def __init__(self, integrator: Integrator = "radau") -> None:
        self.integrator: Integrator = integrator

    def with_integrator(self, integrator: Integrator) -> Self:
        """Return the same method with another integrator."""
        return type(self)(integrator)


def with_other_integrator(method: NumericalMethod) -> NumericalMethod:
    """Return a method with another integrator in time than its own, or as it is where it has only one."""
    if not isinstance(method, Stepping):
        return method
    return method.with_integrator("runge-kutta" if method.integrator == "radau" else "radau")


def load_method(name: str) -> NumericalMethod:
    """Return the method of a name; raises `ConfigurationError` where there is none or it cannot be loaded."""
    method: NumericalMethod = load_plugin("sharp.solvers", name, _made)
    return method


def all_methods() -> list[NumericalMethod]:
    """Return every method that can be loaded, the built-in ones first."""
    return list(load_plugins("sharp.solvers", _made).values())


def _made(factory: Any) -> NumericalMethod:
    method: NumericalMethod = factory()
    for name in ("name", "unsupported_reason", "resolution_sequence", "solve"):
        if not hasattr(method, name):
            raise TypeError(f"a numerical method has `{name}` (see sharp.solvers.method.NumericalMethod)")
    return method
