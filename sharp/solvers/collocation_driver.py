"""Solving a system on grids of nodes: the steps that all methods of collocation share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharp.solvers.collocation import Collocation
from sharp.solvers.discontinuities import jump_times
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.eigen import smallest_eigenpairs
from sharp.solvers.grid import Array, CollocationGrid
from sharp.solvers.matrices import columns_of
from sharp.solvers.method import Deadline
from sharp.solvers.radau import integrate
from sharp.solvers.sample_points import evaluate
from sharp.solvers.steady import solve_steady
from sharp.solvers.system import FirstOrderSystem

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
    system: FirstOrderSystem,
    grid: Callable[[int], CollocationGrid],
    resolution: int,
    accuracy: float,
    deadline: Deadline,
) -> DiscreteSolution:
    """Return the solution of any kind of problem on the grid of a resolution.

    Raises `SolverFailed` and `TimeLimitExceeded`.
    """
    collocation = Collocation(system, grid(resolution))
    if system.problem.time is not None:
        return solve_transient(name, collocation, resolution, accuracy, deadline)
    if system.eigenvalue_terms:
        coarse = Collocation(system, grid(int(_COARSE * resolution)))
        return _eigen(name, collocation, coarse, resolution, deadline)
    state = solve_steady(collocation, deadline)
    return DiscreteSolution(
        name, resolution, evaluator(collocation, constant_in_time(state)), collocation.size
    )


def solve_transient(
    name: str, discrete: SemiDiscreteSystem, resolution: int, accuracy: float, deadline: Deadline
) -> DiscreteSolution:
    """Return the solution of a time-dependent problem, once it is discretised in space."""
    interval = discrete.system.problem.time
    assert interval is not None
    tolerance = max(_IN_TIME * accuracy, _LEAST)
    trajectory = integrate(
        discrete, discrete.start(), interval, tolerance, deadline, jump_times(discrete.system)
    )
    facts = {"slabs of time": float(len(trajectory.slabs))}
    return DiscreteSolution(name, resolution, evaluator(discrete, trajectory.at), discrete.size, facts=facts)


def _eigen(
    name: str, fine: Collocation, coarse: Collocation, resolution: int, deadline: Deadline
) -> DiscreteSolution:
    wanted = fine.system.problem.specification.eigenvalue
    assert wanted is not None
    values, first = smallest_eigenpairs(fine, coarse, wanted.count, deadline)
    first = scaled(fine, first)
    eigenvalues = tuple(float(value) for value in values)
    return DiscreteSolution(
        name, resolution, evaluator(fine, constant_in_time(first)), fine.size, eigenvalues
    )


def scaled(discrete: SemiDiscreteSystem, state: Array) -> Array:
    """Return a multiple of a state [f] whose largest absolute value, on a fixed lattice of points, is 1."""
    raw = DiscreteSolution("", 0, evaluator(discrete, constant_in_time(state)), discrete.size)
    sample = evaluate(raw, _lattice(discrete.system), np.zeros(1)).ravel()
    return np.asarray(state / sample[np.argmax(np.abs(sample))])


def constant_in_time(state: Array) -> States:
    """Return a state as a function of time."""
    return lambda times: np.broadcast_to(state, (len(times), len(state)))


def evaluator(discrete: SemiDiscreteSystem, states: States) -> Callable[[Array, Array], Array]:
    """Return the function that gives the values [fields, k, m] of the fields at points [m, d] and times [k]."""
    fields = [index for index, component in enumerate(discrete.system.components) if component.order == 0]

    def evaluated(points: Array, times: Array) -> Array:
        values = discrete.values(times, states(times))[:, fields]
        return columns_of(discrete.grid.interpolation(points), values).transpose(1, 0, 2)

    return evaluated


def _lattice(system: FirstOrderSystem) -> Array:
    """Return equidistant points [m, d] in the domain, the same ones for every grid and method."""
    count = _LATTICE[len(system.space) - 1]
    along = np.meshgrid(*(np.linspace(*system.problem.bounds[axis], count) for axis in system.space))
    points = np.stack([values.ravel() for values in along], axis=1)
    return points[system.problem.domain.inside(points)]
