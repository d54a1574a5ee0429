"""Solving at ascending resolutions until two solutions agree, and what their differences say of the error."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sharp.solving.method import Deadline, Method, NotSolved, OutOfTime
from sharp.solving.samples import evaluate, interior, moments, relative_distance
from sharp.solving.solution import Solution
from sharp.solving.system import System

# Where solutions are compared: quasi-random points, at these shares of the time interval.
POINTS = 400
MOMENTS = (0.02, 0.1, 0.25, 0.5, 0.75, 1.0)
# Every other attempt steps in time more finely, so that a common error of both cannot cancel from the difference.
FINER_STEPS = 0.3
# No error is claimed to be smaller than what rounding leaves of a computation of many steps.
ROUNDING = 1e-13
# Nor than this share of the tolerance of the steps in time, whose error two solutions may have in common.
STEPPING = 1e-3
# The share of the last difference that an extrapolation may bring the estimate down to, and its factor of safety.
LEAST_SHARE = 0.1
SAFETY = 1.25
# Above this an observed order only says that the method is of none.
CREDIBLE = 12.0
# How the cost of a method is taken to grow, per space dimension, with the resolution: sparse factorisations in between
# what they cost in two and in three dimensions.
GROWTH = 1.5
# What one attempt may take of the time that is left: one that took more could not be compared with a finer one.
ATTEMPT = 0.5
# After so many failures in a row a method is given up.
FAILURES = 3
TOO_LONG = "would not be done in time"


@dataclass(frozen=True)
class Attempt:
    """One solution at one resolution: its cost, the distance from the one before, or why there is none."""

    method: str
    resolution: int
    seconds: float
    unknowns: int | None = None
    difference: float | None = None
    failure: str = ""


@dataclass(frozen=True)
class Refinement:
    """All attempts of one method, its best solution, and the estimated relative error of that.

    `order` is the algebraic order of convergence that the last two differences show, None where there are not two;
    `agreed` says that the error is at most the accuracy asked for.
    """

    method: str
    attempts: tuple[Attempt, ...]
    solution: Solution | None
    error: float
    order: float | None
    agreed: bool

    @property
    def course(self) -> str:
        """The last two resolutions in words, with the order where it is that of a method of fixed order."""
        done = [attempt.resolution for attempt in self.attempts if attempt.unknowns is not None]
        if len(done) < 2:
            return f"at resolution {done[-1]} alone" if done else ""
        order = f" with order {self.order:.1f}" if self.order is not None and self.order < CREDIBLE else ""
        return f"from resolution {done[-2]} to {done[-1]}{order}"

    @property
    def seconds(self) -> float:
        """What all attempts took."""
        return sum(attempt.seconds for attempt in self.attempts)


Listener = Callable[[Attempt], None]


def refine(
    method: Method,
    system: System,
    accuracy: float,
    deadline: Deadline,
    resolutions: Sequence[int] = (),
    listener: Listener = lambda _: None,
    before: Refinement | None = None,
) -> Refinement:
    """Solve at ascending resolutions until the difference of two successive solutions promises the accuracy.

    A resolution at which the method fails is passed over; the limit of time ends the refinement with what is there.
    A refinement that has been made `before`, with another accuracy, is carried on from where it ended.
    """
    attempts = list(before.attempts) if before else []
    solution = before.solution if before else None
    least = ROUNDING if system.steady else max(ROUNDING, STEPPING * accuracy)
    error, order = estimate(attempts, least)
    done = max((attempt.resolution for attempt in attempts), default=0)
    for resolution in resolutions or method.resolutions(system):
        if resolution <= done:
            continue
        limit = Deadline.within(ATTEMPT * deadline.left)
        if attempts and _cost(attempts[-1], resolution, len(system.space)) > deadline.left:
            found, attempt = None, Attempt(method.name, resolution, 0.0, failure=TOO_LONG)
        else:
            steps = accuracy * (FINER_STEPS if len(attempts) % 2 else 1.0)
            found, attempt = _attempt(method, system, resolution, steps, limit, solution)
        attempts.append(attempt)
        listener(attempt)
        solution = found or solution
        error, order = estimate(attempts, least)
        if error <= accuracy or limit.left < 0 or _given_up(attempts):
            break
    return Refinement(method.name, tuple(attempts), solution, error, order, error <= accuracy)


def _attempt(
    method: Method,
    system: System,
    resolution: int,
    steps: float,
    deadline: Deadline,
    before: Solution | None,
) -> tuple[Solution | None, Attempt]:
    start = time.perf_counter()
    try:
        # What overflows on the way to a blow-up is told by the method's failure or by the difference.
        with np.errstate(all="ignore"):
            solution = method.solve(system, resolution, steps, deadline)
        if before is not None and solution.unknowns <= before.unknowns:
            raise NotSolved(f"no finer than before, with {solution.unknowns} unknowns")
        difference = None if before is None else distance(system, before, solution)
    except (NotSolved, OutOfTime) as error:
        return None, Attempt(method.name, resolution, time.perf_counter() - start, failure=str(error))
    seconds = time.perf_counter() - start
    return solution, Attempt(method.name, resolution, seconds, solution.unknowns, difference)


def _given_up(attempts: Sequence[Attempt]) -> bool:
    last = [attempt.failure for attempt in attempts[-FAILURES:]]
    return last[-1] == TOO_LONG or (len(last) == FAILURES and all(last))


def _cost(last: Attempt, resolution: int, dimension: int) -> float:
    """Return the seconds that a resolution is expected to take after the last attempt, none for a coarser one."""
    if last.failure or resolution <= last.resolution:
        return 0.0
    return last.seconds * math.pow(resolution / last.resolution, GROWTH * dimension)


def distance(system: System, first: Solution, second: Solution) -> float:
    """Return the relative distance of two solutions: L2 over points, moments and fields, or of the eigenvalues."""
    if second.eigenvalues:
        a, b = np.array(first.eigenvalues), np.array(second.eigenvalues)
        count = min(len(a), len(b))
        return eigenvalue_distance(a[:count], b[:count])
    points, times = interior(system.problem, POINTS), moments(system.problem, MOMENTS)
    return relative_distance(evaluate(first, points, times), evaluate(second, points, times))


def eigenvalue_distance(values: np.ndarray, reference: np.ndarray) -> float:
    """Return the largest relative difference of eigenvalues; a vanishing one is measured by the largest."""
    least = 1e-6 * float(np.max(np.abs(reference))) or 1.0
    return float(np.max(np.abs(values - reference) / np.maximum(np.abs(reference), least)))


def estimate(attempts: Sequence[Attempt], least: float = ROUNDING) -> tuple[float, float | None]:
    """Return the estimated relative error of the last solution, `least` at least, and the observed order.

    With errors C n**-p, the last difference d is (r**p - 1) times the error of the finer solution, where r is the
    ratio of the last two resolutions (Richardson's extrapolation; with the factor of safety that P. Roache advises for
    an observed order, Verification and Validation in Computational Science and Engineering, 1998, ch. 5). The order p
    comes from the last two differences; without it the error is taken to be the last difference.
    """
    known = [attempt for attempt in attempts if attempt.difference is not None]
    if not known:
        return math.inf, None
    last = float(known[-1].difference or 0.0)
    chain = [attempt for attempt in attempts if attempt.unknowns is not None][-3:]
    order = _order(chain) if len(chain) == 3 else None
    share = 1.0
    if order is not None:
        ratio = chain[-1].resolution / chain[-2].resolution
        growth = ratio ** min(order, 60.0) - 1.0
        share = max(SAFETY / growth, LEAST_SHARE)
    return max(last * share, least), order


def _order(chain: Sequence[Attempt]) -> float | None:
    """Return p of `C n**-p` by two differences of three solutions; None where they do not fall or vanish."""
    coarse, middle, fine = chain
    if not (coarse.resolution < middle.resolution < fine.resolution):
        return None
    earlier, later = middle.difference or 0.0, fine.difference or 0.0
    if not (0.0 < later < earlier < math.inf):
        return None
    a, b, c = (float(attempt.resolution) for attempt in chain)
    return _bisect(lambda p: (a**-p - b**-p) / (b**-p - c**-p) - earlier / later)


def _bisect(function: Callable[[float], float], low: float = 0.05, high: float = 60.0) -> float:
    """Return where a rising function is zero, or the nearer end."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2
