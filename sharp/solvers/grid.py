"""What every discretisation by nodes has in common: where the nodes are, and what differentiates values on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.intp]


class CollocationGrid(Protocol):
    """Nodes in a domain, with matrices that act on the values of one function at all nodes [n].

    Matrices are dense arrays or sparse ones of SciPy, always of the same kind on one grid.
    """

    @property
    def points(self) -> Array:
        """The nodes [n, d], those on the boundary included."""
        ...

    @property
    def parts(self) -> Mapping[str, Indices]:
        """The nodes [k] of each part of the boundary, by the name that the domain gives it; periodic ends are none."""
        ...

    @property
    def weights(self) -> Array:
        """Quadrature weights [n]: their sum is the size of the domain."""
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

    def interpolation(self, points: Array) -> Any:
        """Return the matrix [m, n] that takes values at the nodes to values at points [m, d] of the domain."""
        ...
