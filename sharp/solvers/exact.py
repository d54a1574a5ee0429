"""Comparison with the exact solution, at points that no other check uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from sharp.problems import Problem, evaluate_tree
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.field_sizes import largest_error, relative_distance
from sharp.solvers.functions import compile_function
from sharp.solvers.grid import Array
from sharp.solvers.refine import eigenvalue_distance, norm_of
from sharp.solvers.sample_points import evaluate, interior_points, sample_times

HELD_OUT = 1200
FIRST = 20011
MOMENTS = (0.0, 0.007, 0.05, 0.17, 0.33, 0.41, 0.66, 0.83, 1.0)


@dataclass(frozen=True)
class Errors:
    """Errors against the exact solution: the relative one in L2, the largest relative to the largest value.

    Where jumps travel, the former is in L1.
    """

    l2: float
    maximum: float


Known = Callable[[Array, Array], Array] | tuple[float, ...]
"""A solution as a function of points [m, d] and times [k] with values [fields, k, m]; or the lowest eigenvalues."""


def exact_errors(problem: Problem, solution: DiscreteSolution, known: Known | None = None) -> Errors | None:
    """Return the errors of the worst field or eigenvalue, or None where no exact solution is known.

    That of the specification is taken, or `known`.
    """
    known = known if known is not None else _stated(problem)
    if known is None or isinstance(known, tuple) != bool(solution.eigenvalues):
        return None
    if isinstance(known, tuple):
        error = eigenvalue_distance(solution.eigenvalues, known)
        return Errors(error, error)
    points, times = interior_points(problem, HELD_OUT, start=FIRST), sample_times(problem, MOMENTS)
    exact, found = known(points, times), evaluate(solution, points, times)
    error = relative_distance(problem, found, exact, norm_of(problem))
    return Errors(error, largest_error(problem, found, exact))


def _stated(problem: Problem) -> Known | None:
    reference = problem.specification.reference
    if reference.eigenvalues:
        return known_eigenvalues(problem)
    return partial(exact_values, problem) if reference.value else None


def exact_values(problem: Problem, points: Array, times: Array) -> Array:
    """Return the values [fields, k, m] of the exact solution that the specification gives."""
    given = problem.specification.reference.value
    return np.stack([compile_function(problem, given[name])(points, times) for name in problem.fields])


def known_eigenvalues(problem: Problem) -> tuple[float, ...]:
    """Return the exact eigenvalues that the specification gives, ascending."""
    return tuple(
        evaluate_tree(problem.tree(text), problem.parameters)
        for text in problem.specification.reference.eigenvalues
    )
