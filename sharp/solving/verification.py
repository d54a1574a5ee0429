"""Whether a solution is right: checks with stated limits that do not depend on what the method says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Literal

from sharp.errors import SpecificationError
from sharp.problems.problem import Problem
from sharp.solving.balances import balance
from sharp.solving.exact import exact_errors
from sharp.solving.mismatches import (
    Mismatch,
    boundary_mismatches,
    initial_mismatches,
    mean_mismatches,
)
from sharp.solving.refine import Refinement
from sharp.solving.residuals import residual
from sharp.solving.second import Opinion
from sharp.solving.solution import Solution
from sharp.solving.system import System
from sharp.solving.traits import Traits

Verdict = Literal["verified", "doubtful", "failed"]

REFINEMENT = "refinement"
RESIDUAL = "residual of the equations"
BALANCE = "balance over parts of the domain"
INITIAL = "initial state"
BOUNDARY = "boundary conditions"
FLUX = "boundary conditions with derivatives"
MEAN = "mean"
SECOND = "second method"
EXACT = "exact solution"
MAXIMUM = "exact solution, largest error"


@dataclass(frozen=True)
class Check:
    """A relative figure, the limit that it must keep, and the bound beyond which the solution is wrong."""

    name: str
    value: float
    limit: float
    bound: float
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """`verified` up to the limit, `failed` beyond the bound."""
        if self.value <= self.limit:
            return "verified"
        return "doubtful" if self.value <= self.bound else "failed"


@dataclass(frozen=True)
class Limits:
    """Limit and bound of every check, for an accuracy and for what is expected of the solution.

    `rough` data keep it from being smooth; a `weak` solution satisfies its equations in the mean only.
    """

    accuracy: float
    rough: bool
    weak: bool = False

    def refinement(self) -> tuple[float, float]:
        """The estimated error is at most the accuracy asked for."""
        return self.accuracy, max(0.2, self.accuracy)

    def residual(self) -> tuple[float, float]:
        """Differencing a solution costs digits, as many more as its derivatives are less accurate than itself."""
        return (0.1, 0.5) if self.rough else (1e-2, 0.1)

    def balance(self) -> tuple[float, float]:
        """Sums over jumps are accurate to the distance of their points."""
        return 0.03, 0.15

    def value(self) -> tuple[float, float]:
        """Values that are given are met ten times less accurately than asked for at worst."""
        return max(10 * self.accuracy, 1e-8), 0.05

    def initial(self) -> tuple[float, float]:
        """A jump in the initial state can be met in the mean only."""
        return (0.1, 0.3) if self.rough else self.value()

    def derivative(self) -> tuple[float, float]:
        """Derivatives at the boundary by one-sided differences."""
        return (0.05, 0.5) if self.rough else (1e-2, 0.1)

    def second(self, own: float) -> tuple[float, float]:
        """Two methods differ by about as much as the less accurate of them differs from itself."""
        limit = max(10 * self.accuracy, 3 * own)
        return limit, max(0.05, 10 * limit)

    def exact(self) -> tuple[float, float]:
        """The accuracy asked for is an estimate's; the true error may be ten times larger."""
        return max(10 * self.accuracy, 1e-11), max(100 * self.accuracy, 1e-2)


def limits_of(system: System, accuracy: float) -> Limits:
    """Return the limits that fit a system."""
    traits = Traits(system)
    return Limits(accuracy, bool(traits.rough), traits.weak)


def verify(
    problem: Problem, refinement: Refinement, limits: Limits, compare: bool = True
) -> tuple[Check, ...]:
    """Return all checks of the solution of a refinement; with an exact solution only where it may be compared."""
    solution = refinement.solution
    assert solution is not None, "there is something to verify"
    return (
        _refinement(refinement, limits),
        *equation_checks(problem, solution, limits),
        *condition_checks(problem, solution, limits),
        *(exact_checks(problem, solution, limits) if compare else ()),
    )


def equation_checks(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    """Yield how well the equations are satisfied."""
    yield from _residual(problem, solution, limits)
    if limits.weak:
        yield from _balance(problem, solution, limits)


def condition_checks(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    """Yield how well initial, boundary and mean values are met."""
    yield from _worst(INITIAL, initial_mismatches(problem, solution), limits.initial(), limits)
    yield from _boundary(problem, solution, limits)
    yield from _worst(MEAN, mean_mismatches(problem, solution), limits.value(), limits)


def _refinement(refinement: Refinement, limits: Limits) -> Check:
    """An error that nothing is known of, after a single resolution, is a doubt and not a fault."""
    limit, bound = limits.refinement()
    return Check(
        REFINEMENT, refinement.error, limit, bound if isfinite(refinement.error) else inf, refinement.course
    )


def with_opinion(opinion: Opinion | None, limits: Limits) -> Iterator[Check]:
    """Yield the comparison with another method."""
    if opinion is not None:
        note = f"{opinion.method} at resolution {opinion.resolution}; it differs from itself by {opinion.own:.1e}"
        yield Check(SECOND, opinion.distance, *limits.second(opinion.own), note)


def _residual(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    try:
        found = residual(problem, solution)
    except SpecificationError as error:
        yield Check(RESIDUAL, inf, limits.residual()[0], inf, f"not computed: {error}")
        return
    note = f"nine points in ten; the largest is {found.largest:.1e}"
    yield Check(RESIDUAL, found.typical, *limits.residual(), note)


def _balance(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    found = balance(problem, solution)
    if found is not None:
        yield Check(BALANCE, found, *limits.balance(), "twelve boxes in space and time")


def _boundary(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    found = list(boundary_mismatches(problem, solution))
    yield from _worst(BOUNDARY, (each for each in found if not each.coarse), limits.value(), limits)
    yield from _worst(FLUX, (each for each in found if each.coarse), limits.derivative(), limits)


def _worst(
    name: str, mismatches: Iterable[Mismatch], allowed: tuple[float, float], limits: Limits
) -> Iterator[Check]:
    found = list(mismatches)
    if found:
        worst = max(found, key=lambda each: each.value)
        limit, bound = allowed
        coarse, broken = limits.derivative() if worst.coarse else (limit, bound)
        yield Check(name, worst.value, max(limit, coarse), max(bound, broken), worst.condition)


def exact_checks(problem: Problem, solution: Solution, limits: Limits) -> Iterator[Check]:
    """Yield the errors against the exact solution, where the specification has one."""
    errors = exact_errors(problem, solution)
    if errors is not None:
        limit, bound = limits.exact()
        yield Check(EXACT, errors.l2, limit, bound, "relative L2 at points that no other check uses")
        spread = 1e3 if limits.rough else 10.0
        yield Check(
            MAXIMUM, errors.maximum, spread * limit, max(bound, spread * limit), "of the largest value"
        )


def verdict_of(checks: Sequence[Check]) -> Verdict:
    """Return the worst verdict of all checks."""
    found = {check.verdict for check in checks}
    return "failed" if "failed" in found else "doubtful" if "doubtful" in found else "verified"
