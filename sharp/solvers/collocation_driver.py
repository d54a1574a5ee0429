"""From a system that is discretised in space to its solution: steady, time-dependent and eigenvalue problems."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np

from sharp.solvers import radau, runge_kutta
from sharp.solvers.collocation import Collocation
from sharp.solvers.data_features import break_times
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.eigen import eigenpairs_on_two_grids
from sharp.solvers.grid import Array, CollocationGrid
from sharp.solvers.matrices import columns_of
from sharp.solvers.method import Deadline, Integrator, SolverFailed
from sharp.solvers.radau import OdeSolution, OdeSystem
from sharp.solvers.sample_points import evaluate
from sharp.solvers.steady import solve_steady
from sharp.solvers.system import FirstOrderSystem

# The tolerance in time, as a share of the accuracy that is asked for, and the least that rounding errors allow.
# The second method, whose order is low, only has to be well within what a comparison asks for.
_IN_TIME: Mapping[Integrator, float] = {"radau": 0.01, "runge-kutta": 0.1}
_LEAST = 1e-12
# The grid by which eigenvalues are checked has this share of the nodes along each axis.
_COARSE = 0.75
# Points along each axis, in 1 to 3 dimensions, among which the largest value of an eigenfunction is looked for.
_LATTICE = (1001, 101, 31)


class _Integrate(Protocol):
    def __call__(
        self,
        evolution: OdeSystem,
        state: Array,
        interval: tuple[float, float],
        tolerance: float,
        deadline: Deadline,
        breaks: Sequence[float] = (),
    ) -> OdeSolution: ...


_INTEGRATORS: Mapping[Integrator, _Integrate] = {
    "radau": radau.integrate,
    "runge-kutta": runge_kutta.integrate,
}


def solve_collocated(
    name: str,
    system: FirstOrderSystem,
    grid: Callable[[int], CollocationGrid],
    resolution: int,
    accuracy: float,
    deadline: Deadline,
    integrator: Integrator = "radau",
) -> DiscreteSolution:
    """Return the solution of any kind of problem on the grid of a resolution.

    Raises `SolverFailed` and `TimeLimitExceeded`.
    """
    collocation = Collocation(system, grid(resolution))

    def eigenpairs(count: int) -> tuple[Array, Array]:
        coarse = Collocation(system, grid(int(_COARSE * resolution)))
        return eigenpairs_on_two_grids(collocation, coarse, count, deadline)

    return solve_discrete(name, collocation, eigenpairs, resolution, accuracy, deadline, integrator)


def solve_discrete(
    name: str,
    discrete: SemiDiscreteSystem,
    eigenpairs: Callable[[int], tuple[Array, Array]],
    resolution: int,
    accuracy: float,
    deadline: Deadline,
    integrator: Integrator = "radau",
) -> DiscreteSolution:
    """Return the solution of any kind of problem once it is discretised in space.

    `eigenpairs` gives a number of lowest eigenvalues, ascending, and the free values [f] of the first eigenfunction.
    """
    system, wanted = discrete.system, discrete.system.problem.specification.eigenvalue
    states: Callable[[Array], Array]
    eigenvalues = np.empty(0)
    facts: dict[str, float | str] = {}
    if system.problem.time is not None:
        tolerance = max(_IN_TIME[integrator] * accuracy, _LEAST)
        interval, breaks = system.problem.time, break_times(system)
        if integrator == "runge-kutta" and system.inertia is not None:
            raise SolverFailed("the Runge-Kutta methods here need a time derivative of every field")
        advance = _INTEGRATORS[integrator]
        trajectory = advance(discrete, discrete.start(), interval, tolerance, deadline, breaks)
        states = trajectory.at
        facts = {"time steps": float(trajectory.count), "integrator": integrator}
    elif wanted is not None:
        eigenvalues, first = eigenpairs(wanted.count)
        states = _constant(_scaled(discrete, first))
    else:
        states = _constant(solve_steady(discrete, deadline))
    function = _evaluator(discrete, states)
    return DiscreteSolution(name, resolution, function, discrete.size, tuple(eigenvalues.tolist()), facts)


def _scaled(discrete: SemiDiscreteSystem, state: Array) -> Array:
    """Return a multiple of a state [f] whose largest absolute value, on a lattice for all grids and methods, is 1."""
    problem, count = discrete.system.problem, _LATTICE[len(discrete.system.space) - 1]
    along = np.meshgrid(*(np.linspace(*problem.bounds[axis], count) for axis in problem.space))
    points = np.stack([values.ravel() for values in along], axis=1)
    raw = DiscreteSolution("", 0, _evaluator(discrete, _constant(state)), discrete.size)
    sample = evaluate(raw, points[problem.domain.inside(points)], np.zeros(1)).ravel()
    return np.asarray(state / sample[np.argmax(np.abs(sample))])


def _constant(state: Array) -> Callable[[Array], Array]:
    return lambda times: np.broadcast_to(state, (len(times), len(state)))


def _evaluator(
    discrete: SemiDiscreteSystem, states: Callable[[Array], Array]
) -> Callable[[Array, Array], Array]:
    """Return the function that gives the values [fields, k, m] of the fields at points [m, d] and times [k]."""
    fields = [index for index, component in enumerate(discrete.system.components) if component.order == 0]

    def evaluated(points: Array, times: Array) -> Array:
        values = discrete.values(times, states(times))[:, fields]
        return columns_of(discrete.grid.interpolation(points), values).transpose(1, 0, 2)

    return evaluated
