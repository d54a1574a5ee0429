"""Collocation on an interval at Chebyshev nodes that a map spreads more evenly.

D. Kosloff and H. Tal-Ezer, J. Comput. Phys. 104, 1993: x = arcsin(a s) / arcsin(a), where s are Chebyshev nodes. Nodes
are less crowded at the ends, so that fewer of them resolve what happens in the middle.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sharp.problems import BoxDomain
from sharp.solvers import (
    Array,
    BoxGrid,
    ChebyshevAxis,
    Deadline,
    DiscreteSolution,
    FirstOrderSystem,
    Indices,
    solve_collocated,
)

# The nearer to 1, the more even the nodes, and the more of them are needed for the same number of digits.
_A = 0.9


@dataclass(frozen=True)
class MappedAxis:
    """Mapped Chebyshev nodes on an interval, with what differentiates, integrates and interpolates values on them."""

    low: float
    high: float
    count: int

    periodic = False
    dense = True

    @cached_property
    def _reference(self) -> ChebyshevAxis:
        return ChebyshevAxis(-1.0, 1.0, self.count)

    @property
    def _half(self) -> float:
        return (self.high - self.low) / 2

    @cached_property
    def _slope(self) -> Array:
        """The derivative dx/ds at the nodes [n]."""
        s = self._reference.nodes
        return np.asarray(self._half * _A / (np.arcsin(_A) * np.sqrt(1 - (_A * s) ** 2)))

    @property
    def nodes(self) -> Array:
        """The nodes [n]; the ends are exact."""
        nodes = (self.low + self.high) / 2 + self._half * np.arcsin(_A * self._reference.nodes) / np.arcsin(
            _A
        )
        nodes[[0, -1]] = self.low, self.high
        return np.asarray(nodes)

    @property
    def weights(self) -> Array:
        """Quadrature weights [n], by substitution."""
        return self._reference.weights * self._slope

    def derivative(self, order: int) -> Array:
        """Return the matrix [n, n] of a derivative: powers of that of the first one, by the chain rule."""
        first = self._reference.derivative(1) / self._slope[:, None]
        return np.linalg.matrix_power(first, order)

    def stencil(self, points: Array) -> tuple[Indices, Array]:
        """Return the nodes and weights [m, n] of the polynomial in s."""
        x = np.clip((points - self.low) / self._half - 1, -1, 1)
        return self._reference.stencil(np.clip(np.sin(np.arcsin(_A) * x) / _A, -1, 1))


class MappedChebyshev:
    """A numerical method as `sharp.solvers.method.NumericalMethod` describes it."""

    name = "mapped-chebyshev"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes intervals with ends."""
        if len(system.space) > 1 or not isinstance(system.problem.domain, BoxDomain):
            return "the domain is no interval"
        return "the interval is periodic" if system.periodic else None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes of the interval, ascending."""
        del system
        return (16, 24, 36, 54, 80, 120)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution on so many nodes."""
        (axis,) = system.space
        low, high = system.problem.bounds[axis]

        def grid(count: int) -> Any:
            return BoxGrid({axis: MappedAxis(low, high, count)})

        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline)
