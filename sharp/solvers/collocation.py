"""A system on the nodes of a grid: equations at the nodes for what the boundary conditions leave free.

The equations hold at every node but those where a condition takes their place; values there follow from the free
ones, so that a time-dependent problem becomes a system of ordinary differential equations (method of lines). All
functions take many times and states at once: free values are [k, f], all values [k, c, n] for c components.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.discretisation import Componentwise
from sharp.solvers.elimination import BoundaryElimination
from sharp.solvers.grid import Array, CollocationGrid, Indices
from sharp.solvers.matrices import block_matrix, columns_of, prefers_dense_lu, scaled_rows
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative

# Where the outputs of a program belong: to rate i and jet j.
Places = Iterable[tuple[int, int]]


class Collocation(Componentwise):
    """The equations of a system at the nodes of a grid, after its boundary conditions are eliminated.

    Raises `SolverFailed` where the conditions do not determine the values at the boundary.
    """

    def __init__(self, system: FirstOrderSystem, grid: CollocationGrid) -> None:
        self.system = system
        self.grid = grid
        self._elimination = BoundaryElimination(system, grid)
        self._matrices = {jet.by: grid.derivative(jet.by) for jet in system.jets}
        self._equations = paired(system)

    @property
    def ends(self) -> Indices:
        """Up to where the free values of each component go [c]."""
        return self._elimination.ends

    def start(self) -> Array:
        """Return the free values [f] of the initial state."""
        program = compile_expressions(self.system.initial, self.system.space)
        with np.errstate(all="ignore"):
            found = program(*self.grid.points.T)
        return self.sampled(self._stacked(found, ()))

    def rates(self, times: Array, states: Array) -> Array:
        """Return the rates of the free values [k, f]: time derivatives, or residuals of a steady problem."""
        with np.errstate(all="ignore"):
            found = self._rates(*self._arguments(times, self.values(times, states)))
        return self.sampled(self._stacked([found[i] for i in self._equations], (len(times),)))

    def jacobian(self, time: float, state: Array) -> Any:
        """Return the derivatives [f, f] of the rates by the free values."""
        return self._matrix(self._jacobian, self.system.jacobian, time, state)

    def mass(self) -> Any:
        """Return the matrix [f, f] that the eigenvalue multiplies in an eigenvalue problem."""
        program = compile_expressions(list(self.system.mass.values()), self.system.names)
        return self._matrix(program, self.system.mass, 0.0, np.zeros(self.size))

    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""
        given = self._elimination.given(times)
        if self._elimination.fixed:
            flat = self._filled(float(times[0]), states, given)
        else:
            rows = zip(times, states, given, strict=True)
            flat = np.stack([self._filled(time, state, value) for time, state, value in rows])
        return flat.reshape(len(times), len(self.system.components), -1)

    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""
        return columns_of(self._elimination.sample, values.reshape(*values.shape[:-2], -1))

    def constraint_matrix(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones."""
        return self._elimination.constraint_matrix(time).by_free

    @cached_property
    def _rates(self) -> ExpressionProgram:
        return compile_expressions(self.system.rhs, self.system.names)

    @cached_property
    def _jacobian(self) -> ExpressionProgram:
        return compile_expressions(list(self.system.jacobian.values()), self.system.names)

    def _filled(self, time: float, free: Array, given: Array) -> Array:
        spread = self._elimination.constraint_matrix(time)
        return columns_of(spread.by_free, free) + columns_of(spread.by_given, given)

    def _arguments(self, times: Array, values: Array) -> list[Array]:
        """Return what programs of rates take: space [n], time [k, 1], and the jets [k, n]."""
        return [*self.grid.points.T, times[:, None], *(self._jet(jet, values) for jet in self.system.jets)]

    def _jet(self, jet: SpatialDerivative, values: Array) -> Array:
        along = values[:, jet.component]
        return columns_of(self._matrices[jet.by], along) if jet.order else along

    def _stacked(self, parts: Sequence[Any], leading: tuple[int, ...]) -> Array:
        """Return the values of programs as one array [..., c, n]; some of them are a number for all nodes."""
        shape = (*leading, len(self.grid.points))
        return np.stack([np.broadcast_to(np.asarray(part, dtype=float), shape) for part in parts], axis=-2)

    def _matrix(self, program: ExpressionProgram, places: Places, time: float, state: Array) -> Any:
        """Return `sample (sum of diag(entry) jet matrix) spread` for the partial derivatives at some places."""
        times = np.array([time])
        with np.errstate(all="ignore"):
            entries = program(*self._arguments(times, self.values(times, state[None])))
        full = self._assembled(dict(zip(places, entries, strict=True)))
        matrix = self._elimination.sample @ full @ self.constraint_matrix(time)
        return matrix.toarray() if self._fills_up and not isinstance(matrix, np.ndarray) else matrix

    @cached_property
    def _fills_up(self) -> bool:
        """Whether dense factors are the better ones for Jacobians, of which only the pattern counts here."""
        full = self._assembled(dict.fromkeys(self.system.jacobian, 1.0))
        return prefers_dense_lu(self._elimination.sample @ full @ self.constraint_matrix(0.0))

    def _assembled(self, entries: Mapping[tuple[int, int], Any]) -> Any:
        """Return the matrix [c * n, c * n] of all rates by all values."""
        nodes, components = len(self.grid.points), len(self.system.components)
        blocks: list[list[Any]] = [[None] * components for _ in range(components)]
        rows = {rate: row for row, rate in enumerate(self._equations)}
        for (rate, index), entry in entries.items():
            jet = self.system.jets[index]
            factor = np.broadcast_to(np.asarray(entry, dtype=float), (1, nodes))[0]
            term = scaled_rows(factor, self._matrices[jet.by])
            before = blocks[rows[rate]][jet.component]
            blocks[rows[rate]][jet.component] = term if before is None else before + term
        return block_matrix(blocks, nodes)


def paired(system: FirstOrderSystem) -> tuple[int, ...]:
    """Return for each component the rate that its conditions take the place of.

    That is its own time derivative; in a steady system, the equation in which its derivatives are highest, such
    that every equation is taken once.
    """
    count = len(system.components)
    if not system.steady or count == 1:
        return tuple(range(count))
    from scipy.optimize import linear_sum_assignment

    orders = np.full((count, count), -1)
    for rate, index in system.jacobian:
        jet = system.jets[index]
        orders[jet.component, rate] = max(orders[jet.component, rate], jet.order)
    return tuple(int(rate) for rate in linear_sum_assignment(orders, maximize=True)[1])
