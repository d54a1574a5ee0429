"""A system on the nodes of a grid: equations at the nodes for what the boundary conditions leave free.

The equations hold at every node but those where a condition takes their place; values there follow from the free
ones, so that a time-dependent problem becomes a system of ordinary differential equations (method of lines). All
functions take many times and states at once: free values are [k, f], all values [k, c, n] for c components.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from sharp.problems import ExpressionProgram, compile_expressions
from sharp.solvers.boxes import BoxGrid
from sharp.solvers.discretisation import SemiDiscreteSystem
from sharp.solvers.grid import Array, CollocationGrid, Indices, full
from sharp.solvers.matrices import (
    block_diagonal,
    block_matrix,
    columns_of,
    compact,
    prefers_dense_lu,
    scaled_rows,
    solve_sparse,
    sparse_rows,
)
from sharp.solvers.method import SolverFailed
from sharp.solvers.separable import Separable, separated
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative, real

# Fewer unknowns are solved for as fast by other matrices, and more than so many fill no dense one.
_SMALL, _DENSE = 150, 12000
# Where the outputs of a program belong: to rate i and jet j.
Places = Iterable[tuple[int, int]]


class Collocation(SemiDiscreteSystem):
    """The equations of a system at the nodes of a grid, after its boundary conditions are eliminated.

    Raises `SolverFailed` where the conditions do not determine the values at the boundary.
    """

    grid: CollocationGrid

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

    def rates(self, times: Array, states: Array) -> Array:
        """Return the rates of the free values [k, f]: time derivatives, or residuals of a steady problem."""
        with np.errstate(all="ignore"):
            found = self._rates(*self._arguments(times, self.values(times, states)))
        return self.sampled(self._stacked([found[i] for i in self._equations], (len(times),)))

    def jacobian(self, time: float, state: Array) -> Any:
        """Return the derivatives [f, f] of the rates by the free values."""
        if self._separable is not None:
            return self._separable
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
        """Return the values of programs as one array [..., c, n]."""
        return np.stack([full(part, (*leading, len(self.grid.points))) for part in parts], axis=-2)

    def _matrix(self, program: ExpressionProgram, places: Places, time: float, state: Array) -> Any:
        """Return `sample (sum of diag(entry) jet matrix) spread` for the partial derivatives at some places."""
        times = np.array([time])
        with np.errstate(all="ignore"):
            entries = program(*self._arguments(times, self.values(times, state[None])))
        whole = self._assembled(dict(zip(places, entries, strict=True)))
        matrix = self._elimination.sample @ whole @ self.constraint_matrix(time)
        if isinstance(matrix, np.ndarray) or not self._fills_up:
            return matrix
        if self.size > _DENSE:
            raise SolverFailed(f"a dense matrix of {self.size} unknowns is too large")
        return matrix.toarray()

    @cached_property
    def _separable(self) -> Separable | None:
        """The matrix of derivatives where it is always the same, and acts along one axis of a box at a time."""
        system, counts = self.system, self._elimination.free_counts
        wanted = system.problem.specification.eigenvalue
        if (
            counts is None
            or wanted is not None
            or system.mean
            or system.constrained
            or not self.constant
            or self.size < _SMALL
        ):
            return None
        times, state = np.zeros(1), np.zeros((1, self.size))
        with np.errstate(all="ignore"):
            entries = self._jacobian(*self._arguments(times, self.values(times, state)))
        whole = self._assembled(dict(zip(system.jacobian, entries, strict=True)))
        matrix = self._elimination.sample @ whole @ self.constraint_matrix(0.0)
        return None if isinstance(matrix, np.ndarray) else separated(matrix, counts, len(system.components))

    @cached_property
    def _fills_up(self) -> bool:
        """Whether dense factors are the better ones for Jacobians, of which only the pattern counts here."""
        whole = self._assembled(dict.fromkeys(self.system.jacobian, 1.0))
        return prefers_dense_lu(self._elimination.sample @ whole @ self.constraint_matrix(0.0))

    def _assembled(self, entries: Mapping[tuple[int, int], Any]) -> Any:
        """Return the matrix [c * n, c * n] of all rates by all values."""
        nodes, components = len(self.grid.points), len(self.system.components)
        blocks: list[list[Any]] = [[None] * components for _ in range(components)]
        rows = {rate: row for row, rate in enumerate(self._equations)}
        for (rate, index), entry in entries.items():
            jet = self.system.jets[index]
            term = scaled_rows(full(entry, (1, nodes))[0], self._matrices[jet.by])
            before = blocks[rows[rate]][jet.component]
            blocks[rows[rate]][jet.component] = term if before is None else before + term
        return block_matrix(blocks, nodes)


def paired(system: FirstOrderSystem) -> tuple[int, ...]:
    """Return for each component the rate that its conditions take the place of.

    That is its own time derivative; in a steady system, the equation in which its derivatives are highest, such
    that every equation is taken once. That of a pressure is the constraint.
    """
    count = len(system.components)
    if not system.steady or count == 1 or system.constrained:
        return tuple(range(count))
    from scipy.optimize import linear_sum_assignment

    orders = np.full((count, count), -1)
    for rate, index in system.jacobian:
        jet = system.jets[index]
        orders[jet.component, rate] = max(orders[jet.component, rate], jet.order)
    return tuple(int(rate) for rate in linear_sum_assignment(orders, maximize=True)[1])


@dataclass(frozen=True)
class AffineConstraints:
    """How all values follow: `values = free @ by_free.T + given @ by_given.T`."""

    by_free: Any
    by_given: Any


class BoundaryElimination:
    """The conditions of a system on a grid, for all components at once.

    Vectors of all values have the components one after the other [c * n]. `sample` is the matrix [f, c * n] that
    gives the free ones, those of a component up to the next of `ends`. `fixed` says whether they count alike at all
    times.
    """

    def __init__(self, system: FirstOrderSystem, grid: CollocationGrid) -> None:
        self._conditions = system.conditions
        self._grid = grid
        self._size = len(grid.points)
        self._names = (*system.space, system.time)
        factors = (factor for condition in self._conditions for factor in condition.factors.values())
        self.fixed = not any(real(system.time) in factor.free_symbols for factor in factors)
        self._constrained = system.constrained
        replaced = [self._replaced(component) for component in range(len(system.components))]
        self._rows = [rows for rows, _ in replaced]
        self._samples = [self._sample(nodes) for _, nodes in replaced]
        self.sample = block_diagonal(self._samples)
        self.ends = np.cumsum([sample.shape[0] for sample in self._samples])
        # Newton iterations come back to the times of the stages.
        self._spread_at = lru_cache(maxsize=64)(self._new_spread)

    @property
    def free_counts(self) -> tuple[int, ...] | None:
        """The free nodes along each axis of a box where these are the same for all components, otherwise None."""
        shape = getattr(self._grid, "shape", ())
        if len(shape) < 2 or any(isinstance(sample, np.ndarray) for sample in self._samples):
            return None
        first, *others = (sample.indices for sample in self._samples)
        along = [np.unique(places) for places in np.unravel_index(first, shape)]
        counts = tuple(len(places) for places in along)
        same = all(np.array_equal(first, other) for other in others)
        return counts if same and len(first) == math.prod(counts) else None

    def constraint_matrix(self, time: float) -> AffineConstraints:
        """Return how all values follow from the free and the given ones at a time.

        Raises `SolverFailed` where conditions do not determine the values that are not free.
        """
        return self._spread_at(0.0 if self.fixed else float(time))

    def given(self, times: Array) -> Array:
        """Return the values of the conditions [k, g] at times [k]."""
        found = [
            self._at_part(self._values[index], index, times)[0][:, kept]
            for rows in self._rows
            for index, kept in rows.items()
        ]
        return np.concatenate([np.empty((len(times), 0)), *found], axis=1)

    @cached_property
    def _values(self) -> list[ExpressionProgram]:
        return [compile_expressions([condition.value], self._names) for condition in self._conditions]

    def _replaced(self, component: int) -> tuple[dict[int, list[int]], Indices]:
        """Return the rows of each condition that take the place of equations, and the nodes of these equations.

        Of several conditions at a node, that of lowest order counts. A pressure has no conditions: it is a polynomial
        of two degrees less, through its values off the boundary, where its constraint holds (C. Bernardi and Y. Maday,
        Approximations spectrales de problèmes aux limites elliptiques, 1992, ch. IV).
        """
        if component in self._constrained:
            return {}, np.unique(np.concatenate([np.empty(0, dtype=np.intp), *self._grid.parts.values()]))
        layers: list[tuple[int, Indices]] = []
        for part in self._grid.parts:
            here = [
                index
                for index, given in enumerate(self._conditions)
                if (given.component, given.part) == (component, part)
            ]
            nodes = self._grid.replaced_nodes(part, len(here)).reshape(len(here), -1) if here else ()
            layers += zip(sorted(here, key=self._order), nodes, strict=True)
        taken: dict[int, tuple[int, int]] = {}
        for index, layer in sorted(layers, key=lambda pair: self._order(pair[0])):
            for row, node in enumerate(layer.tolist()):
                taken.setdefault(node, (index, row))
        rows: dict[int, list[int]] = {}
        for index, row in sorted(taken.values()):
            rows.setdefault(index, []).append(row)
        return rows, np.array(sorted(taken), dtype=np.intp)

    def _order(self, index: int) -> int:
        factors = self._conditions[index].factors
        return max((order for order, factor in factors.items() if factor != 0), default=0)

    def _sample(self, replaced: Indices) -> Any:
        """Return the matrix [f, n] that gives the free values of one component."""
        outer = np.concatenate([np.empty(0, dtype=np.intp), *self._grid.parts.values()])
        resample = getattr(self._grid, "resampling", None)
        # Nodes inside are replaced where there are several conditions at an end: some grids have a better way.
        if resample is not None and np.setdiff1d(replaced, outer).size:
            matrix = resample(len(replaced))
            if matrix is not None:
                return matrix
        from scipy import sparse

        return sparse.eye_array(self._size, format="csr")[np.setdiff1d(np.arange(self._size), replaced)]

    def _new_spread(self, time: float) -> AffineConstraints:
        pairs = [
            self._inside_out()
            if component in self._constrained
            else _solve(sample, self._condition_rows(rows, time))
            for component, (sample, rows) in enumerate(zip(self._samples, self._rows, strict=True))
        ]
        return AffineConstraints(*(block_diagonal(blocks) for blocks in zip(*pairs, strict=True)))

    def _inside_out(self) -> tuple[Any, Any]:
        """Return the matrices [n, f] and [n, 0] of a pressure."""
        from scipy import sparse

        assert isinstance(self._grid, BoxGrid)
        return self._grid.from_inside(), sparse.csr_array((self._size, 0))

    def _at_part(self, program: ExpressionProgram, index: int, times: Array) -> list[Array]:
        """Return the outputs of a program [k, nodes] at times and at the nodes of a condition's part."""
        nodes = self._grid.parts[self._conditions[index].part]
        with np.errstate(all="ignore"):
            found = program(*self._grid.points[nodes].T, times[:, None])
        return [full(part, (len(times), len(nodes))) for part in found]

    def _condition_rows(self, rows: Mapping[int, list[int]], time: float) -> Any:
        """Return the matrix [g, n] whose product with the values of a component are its conditions' left sides."""
        from scipy import sparse

        blocks = [self._left_side(index, time)[kept] for index, kept in rows.items()]
        return sparse.vstack([sparse.csr_array((0, self._size)), *blocks], format="csr")

    def _left_side(self, index: int, time: float) -> Any:
        """Return the rows [k, n] of a condition at all nodes of its part."""
        from scipy import sparse

        condition = self._conditions[index]
        program = compile_expressions(list(condition.factors.values()), self._names)
        factors = self._at_part(program, index, np.array([time]))
        nodes = self._grid.parts[condition.part][:, None]
        terms = [
            sparse.diags_array(factor[0])
            @ sparse.csr_array(self._grid.normal_derivative(condition.part, order))
            if order
            else sparse_rows(nodes, factor[0], self._size)
            for order, factor in zip(condition.factors, factors, strict=True)
        ]
        return sparse.csr_array(sum(terms[1:], terms[0]))


def _solve(sample: Any, rows: Any) -> tuple[Any, Any]:
    """Return the matrices [n, f] and [n, g] that invert `sample` and the conditions together."""
    try:
        if isinstance(sample, np.ndarray):
            inverse = np.linalg.inv(np.concatenate([sample, rows.toarray()]))
            return inverse[:, : len(sample)], inverse[:, len(sample) :]
        return _solve_selected(sample, rows)
    except (RuntimeError, np.linalg.LinAlgError):
        raise SolverFailed("the boundary conditions contradict each other, or say nothing") from None


def _solve_selected(sample: Any, rows: Any) -> tuple[Any, Any]:
    """The same where `sample` selects nodes: only the values at the other nodes have to be solved for."""
    from scipy import sparse

    free, size = sample.shape
    given_up = np.setdiff1d(np.arange(size), sample.indices)
    if size < _SMALL:
        values, place = np.zeros((size, size)), rows.toarray()
        values[sample.indices, np.arange(free)] = 1.0
        values[given_up, :free] = -place[:, sample.indices]
        values[given_up, free:] = np.eye(len(given_up))
        values[given_up] = np.linalg.solve(place[:, given_up], values[given_up])
        return values[:, :free], values[:, free:]
    right = sparse.hstack([-rows[:, sample.indices], sparse.eye_array(len(given_up))], format="csc")
    solved = solve_sparse(rows[:, given_up], right)
    place = sparse.eye_array(size, format="csr")[:, given_up]
    return compact(sample.T + place @ solved[:, :free]), compact(place @ solved[:, free:])
