"""Solving a system on grids of nodes: the steps that all methods of collocation share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharp.solving.breaks import breaks
from sharp.solving.collocation import Collocation
from sharp.solving.discretisation import Discretisation
from sharp.solving.eigen import lowest
from sharp.solving.grid import Array, Grid
from sharp.solving.matrices import columns_of
from sharp.solving.method import Deadline
from sharp.solving.radau import integrate
from sharp.solving.samples import evaluate
from sharp.solving.solution import Solution
from sharp.solving.steady import solve_steady
from sharp.solving.system import System

# The tolerance in time, as a share of the accuracy that is asked for, and the least that rounding errors allow.
_IN_TIME = 0.01
_LEAST = 1e-12
# The grid by which eigenvalues are checked has this share of the nodes along each axis.
_COARSE = 0.75
# Points along each axis, in 1 to 3 dimensions, among which the largest value of an eigenfunction is looked for.
_LATTICE = (1001, 101, 31)

States = Callable[[Array], Array]


def solve_collocated(
    name: str,
    system: System,
    grid: Callable[[int], Grid],
    resolution: int,
    accuracy: float,
    deadline: Deadline,
) -> Solution:
    """Return the solution of any kind of problem on the grid of a resolution.

    Raises `NotSolved` and `OutOfTime`.
    """
    collocation = Collocation(system, grid(resolution))
    if system.problem.time is not None:
        return in_time(name, collocation, resolution, accuracy, deadline)
    if system.weights:
        coarse = Collocation(system, grid(int(_COARSE * resolution)))
        return _eigen(name, collocation, coarse, resolution, deadline)
    state = solve_steady(collocation, deadline)
    return Solution(name, resolution, evaluation(collocation, always(state)), collocation.size)


def in_time(
    name: str, discrete: Discretisation, resolution: int, accuracy: float, deadline: Deadline
) -> Solution:
    """Return the solution of a time-dependent problem, once it is discretised in space."""
    interval = discrete.system.problem.time
    assert interval is not None
    tolerance = max(_IN_TIME * accuracy, _LEAST)
    trajectory = integrate(discrete, discrete.start(), interval, tolerance, deadline, breaks(discrete.system))
    facts = {"slabs of time": float(len(trajectory.slabs))}
    return Solution(name, resolution, evaluation(discrete, trajectory.at), discrete.size, facts=facts)


def _eigen(
    name: str, fine: Collocation, coarse: Collocation, resolution: int, deadline: Deadline
) -> Solution:
    wanted = fine.system.problem.specification.eigenvalue
    assert wanted is not None
    values, first = lowest(fine, coarse, wanted.count, deadline)
    first = scaled(fine, first)
    eigenvalues = tuple(float(value) for value in values)
    return Solution(name, resolution, evaluation(fine, always(first)), fine.size, eigenvalues)


def scaled(discrete: Discretisation, state: Array) -> Array:
    """Return a multiple of a state [f] whose largest absolute value, on a fixed lattice of points, is 1."""
    raw = Solution("", 0, evaluation(discrete, always(state)), discrete.size)
    sample = evaluate(raw, _lattice(discrete.system), np.zeros(1)).ravel()
    return np.asarray(state / sample[np.argmax(np.abs(sample))])


def always(state: Array) -> States:
    """Return a state as a function of time."""
    return lambda times: np.broadcast_to(state, (len(times), len(state)))


def evaluation(discrete: Discretisation, states: States) -> Callable[[Array, Array], Array]:
    """Return the function that gives the values [fields, k, m] of the fields at points [m, d] and times [k]."""
    fields = [index for index, component in enumerate(discrete.system.components) if component.order == 0]

    def evaluated(points: Array, times: Array) -> Array:
        values = discrete.values(times, states(times))[:, fields]
        return columns_of(discrete.grid.interpolation(points), values).transpose(1, 0, 2)

    return evaluated


def _lattice(system: System) -> Array:
    """Return equidistant points [m, d] in the domain, the same ones for every grid and method."""
    count = _LATTICE[len(system.space) - 1]
    along = np.meshgrid(*(np.linspace(*system.problem.bounds[axis], count) for axis in system.space))
    points = np.stack([values.ravel() for values in along], axis=1)
    return points[system.problem.domain.inside(points)]
