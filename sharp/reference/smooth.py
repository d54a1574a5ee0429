"""Smooth problems on nested grids: what orders of accuracy are measured on.

The inputs are fixed functions of each family, analytic and periodic where the problem is, evaluated exactly at the
points of every grid.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.problems.problem import Problem
from sharp.reference.datasets import Inputs, ReferenceSolution, uniform_points
from sharp.reference.families import FAMILIES
from sharp.reference.family import BenchmarkFamily
from sharp.reference.initial import Evaluate

Array = NDArray[np.float64]

CELLS = (64, 128, 256, 512, 1024)
NODES = (17, 33, 65, 129, 257)


def resolutions(problem: Problem) -> tuple[int, ...]:
    """Return the points per direction of nested grids, coarse to fine; the spacing halves from one to the next."""
    return NODES if problem.grid.kind == "nodes" else CELLS


def has_smooth_inputs(problem: Problem) -> bool:
    """Whether smooth inputs are known for the problem's family and grid."""
    family = FAMILIES.get(problem.family)
    return family is not None and problem.grid.kind == family.grid


def smooth_inputs(problem: Problem, points: int) -> Inputs:
    """Return the smooth inputs on one grid at the start, the middle and the end, in float64.

    Raises `DataError` for a problem without any.
    """
    duration, t = _family(problem).smooth.duration, None
    if problem.time is not None and duration is not None:
        t = np.linspace(problem.time[0], problem.time[0] + duration(problem), 3)
    x = uniform_points(problem, problem.space[0], points)
    return Inputs(smooth_functions(problem)(x), t, x)


def smooth_functions(problem: Problem) -> Evaluate:
    """Return the function that gives `{port: [n, m]}` at points [m], in two dimensions `{port: [n, m, m]}`.

    Raises `DataError` for a problem without any.
    """
    low, high = problem.bounds[problem.space[0]]
    fields = _family(problem).smooth.fields

    def evaluate(points: Array) -> dict[str, Array]:
        place = (points - low) / (high - low)
        return {port.name: fields[port.field](place) for port in problem.interface.inputs}

    return evaluate


def smooth_reference(problem: Problem, points: int) -> ReferenceSolution:
    """Return the solution for the smooth inputs at the points of one grid, and its error (about 1e-5 at most).

    Raises `DataError` for a problem without any.
    """
    family = _family(problem)
    if family.smooth.solve is not None:
        return family.smooth.solve(problem, points)
    given = smooth_inputs(problem, points)
    return family.solve_reference(problem, given.arrays, given.t, evaluate=smooth_functions(problem))


def _family(problem: Problem) -> BenchmarkFamily:
    if problem.family not in FAMILIES:
        raise DataError(
            f"{problem.id}: no smooth solutions are known for the family {problem.family}; "
            f"those with an order of accuracy to measure are {', '.join(FAMILIES)}"
        )
    family = FAMILIES[problem.family]
    if problem.grid.kind != family.grid:
        raise DataError(
            f"{problem.id}: orders of accuracy of the family {problem.family} are measured on grids of "
            f"{family.grid}, found {problem.grid.kind}"
        )
    return family
