"""The weak form of a system on a space of finite elements: residuals, Jacobians, fixed unknowns."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.discretisation import Componentwise
from sharp.solvers.fem_forms import BoundaryForm, WeakForm, fixed, multipliers, weak_form, weak_weights
from sharp.solvers.fem_line import IntervalSpace
from sharp.solvers.fem_space import FunctionSpace, Quadrature
from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import Quotient, Solve, block_matrix, factorise
from sharp.solvers.method import NEVER, Deadline
from sharp.solvers.system import BoundaryCondition, FirstOrderSystem, covered, real


class FemSystem(Componentwise):
    """The equations of a system for those unknowns of finite elements that no boundary condition gives.

    `space` is one of functions on an interval or on a triangulation. Integrals are not computed after the deadline.

    A `Discretisation` whose free values [k, f] at k times are unknowns, all values [k, c, n] of c components.
    """

    def __init__(
        self, system: FirstOrderSystem, space: IntervalSpace | FunctionSpace, deadline: Deadline = NEVER
    ) -> None:
        self.system = system
        self.grid = space
        self._deadline = deadline
        self._form = weak_form(system)

    @property
    def ends(self) -> Indices:
        """Up to where the free values of each component go [c]."""
        return np.searchsorted(self._free, self.grid.size * np.arange(1, self._components + 1))

    def start(self) -> Array:
        """Return the free values [f] of the initial state, taken at the nodes."""
        program = compile_expressions(self.system.initial, self.system.space)
        nodes = self.grid.points
        found = [np.broadcast_to(np.asarray(value, dtype=float), len(nodes)) for value in program(*nodes.T)]
        return np.concatenate(found)[self._free]

    def rates(self, times: Array, states: Array) -> Array:
        """Return the rates of the free values [k, f]: the solutions of M y' = F - M_g g', where M is the mass matrix,
        F the integrals of rates times test functions and g what is given; F itself in a steady problem.
        """
        values = self.values(times, states).reshape(len(times), -1)
        integrals = self._integrals(times, values)[:, self._free]
        if self.system.steady:
            return integrals
        moving = np.stack([self._boundary_values(time, 1) for time in times])
        inert = self._inertia[self._free][:, self._fixed] @ moving.T
        return np.asarray(self._accelerate(integrals.T - inert).T)

    def jacobian(self, time: float, state: Array) -> Any:
        """Return the derivatives [f, f] of the rates by the free values."""
        values = self.values(np.array([time]), state[None])
        whole = self._operator if self.constant else self._matrix(self._form, time, values.ravel())
        matrix = self._among_free(whole)
        return matrix if self.system.steady else Quotient(matrix, self._among_free(self._inertia))

    def mass(self) -> Any:
        """Return the sparse matrix [f, f] that the eigenvalue multiplies in an eigenvalue problem."""
        return self._among_free(self._matrix(weak_weights(self.system), 0.0, np.zeros(self._all)))

    def potential(self) -> float:
        """Return the least factor of a component itself in its own rate, relative to the weight of the eigenvalue."""
        state = np.zeros(self._all)
        pairs = [self._factors_of_values(form, state) for form in (self._form, weak_weights(self.system))]
        least = [np.min(term / pairs[1][i]) for i, term in pairs[0].items() if np.all(pairs[1].get(i, 0) > 0)]
        return float(min(least, default=0.0))

    def constraint_matrix(self, time: float) -> Any:
        """Return the matrix [c * n, f] by which all values depend on the free ones: ones and zeros."""
        del time
        from scipy import sparse

        return sparse.eye_array(self._all, format="csc")[:, self._free]

    def values(self, times: Array, states: Array) -> Array:
        """Return all values [k, c, n] for the free ones [k, f] at times [k]."""
        values = np.empty((len(times), self._all))
        values[:, self._free] = states
        values[:, self._fixed] = np.stack([self._boundary_values(time) for time in times])
        return values.reshape(len(times), self._components, -1)

    def sampled(self, values: Array) -> Array:
        """Return the free values [..., f] of all values [..., c, n]."""
        return values.reshape(*values.shape[:-2], -1)[..., self._free]

    @property
    def _all(self) -> int:
        return self._components * self.grid.size

    @cached_property
    def _free(self) -> Indices:
        return np.setdiff1d(np.arange(self._all), self._fixed)

    @cached_property
    def _fixed(self) -> Indices:
        """The unknowns that a condition gives, in ascending order."""
        return np.unique(
            np.concatenate([np.empty(0, dtype=np.intp), *(found for _, found, _ in self._given)])
        )

    def _among_free(self, matrix: Any) -> Any:
        return matrix[self._free][:, self._free]

    @cached_property
    def _inertia(self) -> Any:
        """The mass matrix [c * n, c * n] of all unknowns."""
        from scipy import sparse

        inside = self.grid.inside
        factors = compile_expressions(multipliers(self.system), self.system.space)
        found = factors(*np.moveaxis(inside.points, -1, 0))
        blocks = [inside.matrix({(0, 0): _full(factor, inside)}) for factor in found]
        return sparse.block_diag(blocks, format="csr")

    @cached_property
    def _accelerate(self) -> Solve:
        return factorise(self._among_free(self._inertia))

    def _integrals(self, times: Array, values: Array) -> Array:
        """Integrate the rates times every test function [k, c * n]."""
        if not self.constant:
            rows = zip(times, values, strict=True)
            return np.stack([self._integrated(time, state) for time, state in rows])
        forced = np.stack([self._forced(time) for time in times]) if self._driven else self._forced(0.0)
        return np.asarray((self._operator @ values.T).T + forced)

    @cached_property
    def _operator(self) -> Any:
        """The derivatives of the integrals where they are always the same."""
        return self._matrix(self._form, 0.0, np.zeros(self._all))

    @cached_property
    def _driven(self) -> bool:
        """Whether sources or fluxes depend on time."""
        terms = (*self._form.integrands.values(), *self._form.boundary.values())
        return any(real(self.system.time) in term.free_symbols for term in terms)

    def _forced(self, time: float) -> Array:
        return self._integrated(time, np.zeros(self._all))

    def _integrated(self, time: float, values: Array) -> Array:
        """Integrate the rates times every test function [c * n]."""
        self._deadline.check()
        result = np.zeros((self._components, self.grid.size))
        arguments = self._arguments(self.grid.inside, time, values)
        outputs = self._form.integrand(*arguments)
        for (i, a), output in zip(self._form.integrands, outputs, strict=True):
            result[i] += self.grid.inside.vector(a, _full(output, self.grid.inside))
        for quadrature, terms in self._sides(self._form):
            outputs = terms.integrand(*self._arguments(quadrature, time, values))
            for i, output in zip(terms.components, outputs, strict=True):
                result[i] += quadrature.vector(0, _full(output, quadrature))
        return result.ravel()

    def _matrix(self, form: WeakForm, time: float, values: Array) -> Any:
        """Return the derivatives [c * n, c * n] of the integrals by all values."""
        blocks: dict[tuple[int, int], Any] = {}
        for place, term in self._terms(form, time, values):
            blocks[place] = blocks[place] + term if place in blocks else term
        span = range(self._components)
        return block_matrix([[blocks.get((i, j)) for j in span] for i in span], self.grid.size)

    def _factors_of_values(self, form: WeakForm, values: Array) -> dict[int, Array]:
        outputs = form.jacobian(*self._arguments(self.grid.inside, 0.0, values))
        found = zip(form.blocks, outputs, strict=True)
        return {
            i: _full(output, self.grid.inside) for (i, a, j, b), output in found if i == j and a == b == 0
        }

    def _terms(self, form: WeakForm, time: float, values: Array) -> Iterator[tuple[tuple[int, int], Any]]:
        inside = self.grid.inside
        outputs = form.jacobian(*self._arguments(inside, time, values))
        factors: dict[tuple[int, int], dict[tuple[int, int], Array]] = {}
        for (i, a, j, b), output in zip(form.blocks, outputs, strict=True):
            factors.setdefault((i, j), {})[a, b] = _full(output, inside)
        for place, terms in factors.items():
            self._deadline.check()
            yield place, inside.matrix(terms)
        for quadrature, sides in self._sides(form):
            outputs = sides.jacobian(*self._arguments(quadrature, time, values))
            for place, output in zip(sides.blocks, outputs, strict=True):
                yield place, quadrature.matrix({(0, 0): _full(output, quadrature)})

    def _boundary_values(self, time: float, order: int = 0) -> Array:
        """Return the values of the fixed unknowns at a time, or their time derivatives."""
        values = np.zeros(self._all)
        for component, found, programs in self._given:
            points = self.grid.points[found - component * self.grid.size]
            values[found] = programs[order](*points.T, time)[0]
        return values[self._fixed]

    @property
    def _components(self) -> int:
        return len(self.system.components)

    @cached_property
    def _given(self) -> list[tuple[int, Indices, tuple[ExpressionProgram, ExpressionProgram]]]:
        """The component and the unknowns of every condition that gives these, with values and time derivatives."""
        found = []
        for component in range(self._components):
            for part in covered(self.system.problem, "all"):
                condition = fixed(self.system, component, part)
                if condition is not None:
                    unknowns = component * self.grid.size + self.grid.on(part)
                    found.append((component, unknowns, self._value(condition)))
        return found

    def _value(self, condition: BoundaryCondition) -> tuple[ExpressionProgram, ExpressionProgram]:
        value = condition.value / condition.factors[0]
        names = [*self.system.space, self.system.time]
        moving = sympy.diff(value, real(self.system.time))
        return compile_expressions([value], names), compile_expressions([moving], names)

    def _sides(self, form: WeakForm) -> Iterator[tuple[Quadrature, BoundaryForm]]:
        return ((self._along[part], terms) for part, terms in form.sides.items())

    @cached_property
    def _along(self) -> dict[str, Quadrature]:
        return {part: self.grid.along(part) for part in self._form.sides}

    def _arguments(self, quadrature: Quadrature, time: float, values: Array) -> list[Any]:
        points = np.moveaxis(quadrature.points, -1, 0)
        parts = values.reshape(self._components, -1)
        states = (quadrature.at(a, parts[i]) if occurs else 0.0 for (i, a), occurs in self._form.used.items())
        return [*points, time, *states]


def _full(value: Any, quadrature: Quadrature) -> Array:
    return np.broadcast_to(np.asarray(value, dtype=float), quadrature.weights.shape)
