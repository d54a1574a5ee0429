"""Piecewise polynomials on an interval: their values at quadrature points, integrals, and values at any point."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from sharp.solvers.axes import ChebyshevAxis
from sharp.solvers.fem_space import Quadrature
from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import sparse_rows


@dataclass(frozen=True)
class IntervalSpace:
    """Continuous functions on an interval that are polynomials of some degree between neighbouring `ends` [e + 1].

    Each is known by its values at the Chebyshev-Lobatto nodes of every element (spectral elements: A. T. Patera,
    J. Comput. Phys. 54, 1984). Both ends of a periodic interval are one point.
    """

    ends: Array
    degree: int
    periodic: bool = False

    @property
    def size(self) -> int:
        """The number of unknowns of one function."""
        return len(self._widths) * self.degree + (not self.periodic)

    @cached_property
    def points(self) -> Array:
        """The nodes [n, 1], ascending."""
        inner = self.ends[:-1, None] + self._widths[:, None] * self._element.nodes[:-1]
        return np.append(inner.ravel(), self.ends[-1])[: self.size, None]

    @cached_property
    def weights(self) -> Array:
        """The integrals of the functions that are 1 at one node and 0 at the others [n]."""
        return self.inside.vector(0, np.ones_like(self.inside.weights))

    def on(self, part: str) -> Indices:
        """Return the unknown at an end of the interval, as an array."""
        return np.array([self.size - 1 if part[-1] == "+" else 0])

    @cached_property
    def inside(self) -> Quadrature:
        """Quadrature over the interval by Gauss's rule in every element, none of whose points is an end."""
        nodes, weights = np.polynomial.legendre.leggauss(self.degree + 2)
        return self._quadrature(
            np.arange(len(self._widths)), (nodes + 1) / 2, weights / 2 * self._widths[:, None]
        )

    def along(self, part: str) -> Quadrature:
        """Return the value at an end of the interval as quadrature over it."""
        last = part[-1] == "+"
        element = np.array([len(self._widths) - 1 if last else 0])
        return self._quadrature(element, np.array([float(last)]), np.ones((1, 1)))

    def interpolation(self, points: Array) -> Any:
        """Return the sparse matrix [m, n] that takes unknowns to values at points [m, 1] of the interval."""
        places = points[:, 0]
        elements = np.clip(np.searchsorted(self.ends, places, side="right") - 1, 0, len(self._widths) - 1)
        shares = (places - self.ends[elements]) / self._widths[elements]
        return sparse_rows(self._unknowns(elements), self._element.stencil(shares)[1], self.size)

    def _quadrature(self, elements: Indices, shares: Array, weights: Array) -> Quadrature:
        """Return quadrature at shares [q] of the width of some elements [e], with weights [e, q]."""
        widths = self._widths[elements, None]
        values = self._element.stencil(shares)[1]
        shape = (len(elements), *values.shape)
        slopes = values @ self._element.derivative(1) / widths[:, :, None]
        points = self.ends[elements, None] + widths * shares
        forms = (np.broadcast_to(values, shape), np.broadcast_to(slopes, shape))
        return Quadrature(points[..., None], weights, forms, self._unknowns(elements), self.size)

    def _unknowns(self, elements: Indices) -> Indices:
        """Return the numbers [e, degree + 1] of the unknowns of elements [e]."""
        return (elements[:, None] * self.degree + np.arange(self.degree + 1)) % self.size

    @property
    def _widths(self) -> Array:
        return np.diff(self.ends)

    @cached_property
    def _element(self) -> ChebyshevAxis:
        """The nodes of an element as shares of its width."""
        return ChebyshevAxis(0.0, 1.0, self.degree + 1)


def divided(low: float, high: float, inner: Sequence[float], count: int) -> Array:
    """Return the ends of about `count` elements of an interval, which end at the given inner points as well."""
    longest = (high - low) / count
    pieces = [
        np.linspace(a, b, int(np.ceil((b - a) / longest * (1 - 1e-9))), endpoint=False)
        for a, b in pairwise((low, *inner, high))
    ]
    return np.append(np.concatenate(pieces), high)
