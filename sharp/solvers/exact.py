"""Comparison with the exact solution, at points that no other check uses."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sharp.problems import Problem, evaluate_tree
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.functions import compile_function
from sharp.solvers.grid import Array
from sharp.solvers.refine import eigenvalue_distance, norm_of
from sharp.solvers.sample_points import evaluate, interior_points, relative_distance, sample_times

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


def exact_errors(problem: Problem, solution: DiscreteSolution) -> Errors | None:
    """Return the errors of the worst field or eigenvalue, or None where no exact solution is known."""
    reference = problem.specification.reference
    if solution.eigenvalues:
        if not reference.eigenvalues:
            return None
        error = eigenvalue_distance(solution.eigenvalues, known_eigenvalues(problem))
        return Errors(error, error)
    if not reference.value:
        return None
    points, times = interior_points(problem, HELD_OUT, start=FIRST), sample_times(problem, MOMENTS)
    exact, found = exact_values(problem, points, times), evaluate(solution, points, times)
    largest = np.max(np.abs(exact), axis=(1, 2))
    scale = np.where(largest > 1e-6 * np.max(largest), largest, np.max(largest) or 1.0)
    worst = float(np.max(np.max(np.abs(found - exact), axis=(1, 2)) / scale))
    return Errors(relative_distance(found, exact, norm_of(problem)), worst)


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
