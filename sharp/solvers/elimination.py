"""Boundary conditions as linear equations, and what they leave free.

All values of a component on the nodes follow from *free* ones and from the values of its conditions. In most cases
the free ones are the values at the nodes whose equations are kept. Several conditions at one end of an axis go
with values at fewer nodes instead: equations that are left out one by one make third and fourth derivatives
unstable (T. A. Driscoll and N. Hale, Rectangular spectral collocation, IMA J. Numer. Anal. 36, 2016).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.grid import Array, CollocationGrid, Indices
from sharp.solvers.matrices import block_diagonal, compact, solve_sparse
from sharp.solvers.method import SolverFailed
from sharp.solvers.system import BoundaryCondition, FirstOrderSystem, real


@runtime_checkable
class Resampled(Protocol):
    """A grid on which functions with several conditions at an end are stated at fewer nodes."""

    def resampling(self, count: int) -> Array | None:
        """Return the matrix [n - count, n] from values at the nodes to those at fewer; None where there is none."""
        ...


@dataclass(frozen=True)
class RowReplacement:
    """A condition at the row-th node of its part, for which the equation at a node is given up."""

    condition: int
    row: int
    node: int


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
        self._claims = [self._claims_of(component) for component in range(len(system.components))]
        self._samples = [self._sample(claims) for claims in self._claims]
        self.sample = block_diagonal(self._samples)
        self.ends = np.cumsum([sample.shape[0] for sample in self._samples])
        # Newton iterations come back to the times of the stages.
        self._spread_at = lru_cache(maxsize=64)(self._new_spread)

    def constraint_matrix(self, time: float) -> AffineConstraints:
        """Return how all values follow from the free and the given ones at a time.

        Raises `SolverFailed` where conditions do not determine the values that are not free.
        """
        return self._spread_at(0.0 if self.fixed else float(time))

    def given(self, times: Array) -> Array:
        """Return the values of the conditions [k, g] at times [k]."""
        found = [
            self._at_part(self._values[index], index, times)[0][:, rows]
            for index, rows in self._rows_by_condition
        ]
        return np.concatenate([np.empty((len(times), 0)), *found], axis=1)

    @cached_property
    def _values(self) -> list[ExpressionProgram]:
        return [compile_expressions([condition.value], self._names) for condition in self._conditions]

    def _claims_of(self, component: int) -> list[RowReplacement]:
        """Return for each given-up node the condition that takes its place: of several, that of lowest order."""
        found = [claim for part in self._grid.parts for claim in self._claims_at(component, part)]
        found.sort(key=lambda claim: _order(self._conditions[claim.condition]))
        first = {claim.node: claim for claim in reversed(found)}
        return sorted(first.values(), key=lambda claim: (claim.condition, claim.row))

    def _claims_at(self, component: int, part: str) -> Iterator[RowReplacement]:
        here = [
            i
            for i, found in enumerate(self._conditions)
            if (found.component, found.part) == (component, part)
        ]
        here.sort(key=lambda i: _order(self._conditions[i]))
        nodes = self._grid.replaced_nodes(part, len(here)).reshape(len(here), -1) if here else ()
        for index, layer in zip(here, nodes, strict=True):
            yield from (RowReplacement(index, row, int(node)) for row, node in enumerate(layer))

    def _sample(self, claims: Sequence[RowReplacement]) -> Any:
        """Return the matrix [f, n] that gives the free values of one component."""
        if self._crowded(claims) and isinstance(self._grid, Resampled):
            resampling = self._grid.resampling(len(claims))
            if resampling is not None:
                return resampling
        from scipy import sparse

        kept = np.setdiff1d(np.arange(self._size), [claim.node for claim in claims])
        return sparse.eye_array(self._size, format="csr")[kept]

    def _crowded(self, claims: Sequence[RowReplacement]) -> bool:
        """Whether nodes other than those on the boundary are given up."""
        outer = np.concatenate([np.empty(0, int), *self._grid.parts.values()])
        return bool(np.setdiff1d([claim.node for claim in claims], outer).size)

    def _new_spread(self, time: float) -> AffineConstraints:
        pairs = [
            _solve(sample, self._condition_rows(claims, time))
            for sample, claims in zip(self._samples, self._claims, strict=True)
        ]
        return AffineConstraints(*(block_diagonal(blocks) for blocks in zip(*pairs, strict=True)))

    @cached_property
    def _rows_by_condition(self) -> list[tuple[int, Indices]]:
        """The rows of each condition that found a node to replace, component by component."""
        claims = [claim for component in self._claims for claim in component]
        rows: dict[int, list[int]] = {}
        for claim in claims:
            rows.setdefault(claim.condition, []).append(claim.row)
        return [(index, np.array(found)) for index, found in rows.items()]

    def _at_part(self, program: ExpressionProgram, index: int, times: Array) -> list[Array]:
        """Return the outputs of a program [k, nodes] at times and at the nodes of a condition's part."""
        nodes = self._grid.parts[self._conditions[index].part]
        with np.errstate(all="ignore"):
            found = program(*self._grid.points[nodes].T, times[:, None])
        return [np.broadcast_to(np.asarray(part, dtype=float), (len(times), len(nodes))) for part in found]

    def _condition_rows(self, claims: Sequence[RowReplacement], time: float) -> Any:
        """Return the matrix [g, n] whose product with the values of a component are its conditions' left sides."""
        from scipy import sparse

        blocks = [sparse.csr_array((0, self._size))]
        for index in dict.fromkeys(claim.condition for claim in claims):
            rows = np.array([claim.row for claim in claims if claim.condition == index])
            blocks.append(self._left_side(index, time)[rows])
        return sparse.vstack(blocks, format="csr")

    def _left_side(self, index: int, time: float) -> Any:
        """Return the rows [k, n] of a condition at all nodes of its part."""
        from scipy import sparse

        condition = self._conditions[index]
        program = compile_expressions(list(condition.factors.values()), self._names)
        factors = self._at_part(program, index, np.array([time]))
        terms = [
            sparse.diags_array(factor[0])
            @ sparse.csr_array(self._grid.normal_derivative(condition.part, order))
            for order, factor in zip(condition.factors, factors, strict=True)
        ]
        return sparse.csr_array(sum(terms[1:], terms[0]))


def _order(condition: BoundaryCondition) -> int:
    """The highest normal derivative in a condition."""
    return max((order for order, factor in condition.factors.items() if factor != 0), default=0)


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
    right = sparse.hstack([-rows[:, sample.indices], sparse.eye_array(len(given_up))], format="csc")
    solved = solve_sparse(rows[:, given_up], right)
    place = sparse.eye_array(size, format="csr")[:, given_up]
    return compact(sample.T + place @ solved[:, :free]), compact(place @ solved[:, free:])
