"""What every discretisation by nodes has in common: where the nodes are, and what differentiates values on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


def full(value: Any, shape: int | tuple[int, ...]) -> Array:
    """Return what a program gives, an array or one number for all points, as an array of a shape."""
    return np.broadcast_to(np.asarray(value, dtype=float), shape)


class PointSet(Protocol):
    """Points at which functions are known."""

    @property
    def points(self) -> Array:
        """The points [n, d], those on the boundary included."""
        ...

    @property
    def weights(self) -> Array:
        """Quadrature weights [n]: their sum is the size of the domain."""
        ...

    def interpolation(self, points: Array) -> Any:
        """Return the matrix [m, n] that takes values at the nodes to values at points [m, d] of the domain."""
        ...


class CollocationGrid(PointSet, Protocol):
    """Nodes in a domain, with matrices that act on the values of one function at all nodes [n].

    Matrices are dense arrays or sparse ones of SciPy, always of the same kind on one grid.
    """

    @property
    def parts(self) -> Mapping[str, Indices]:
        """The nodes [k] of each part of the boundary, by the name that the domain gives it; periodic ends are none."""
        ...

    def derivative(self, by: tuple[int, ...]) -> Any:
        """Return the matrix [n, n] of the derivative `by[i]` times along space axis i."""
        ...

    def normal_derivative(self, part: str, order: int) -> Any:
        """Return the matrix [k, n] of the outward normal derivative of some order at the nodes of a part."""
        ...

    def replaced_nodes(self, part: str, count: int) -> Indices:
        """Return the nodes [count * k] whose equations make room for `count` conditions at each node of a part.

        The nodes of the part themselves come first, for further conditions those next to them.
        """
        ...
