"""Tensor grids in intervals, rectangles and boxes, where every axis has nodes of its own kind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np

from sharp.solvers.axes import Axis, ChebyshevAxis
from sharp.solvers.grid import Array, Indices
from sharp.solvers.matrices import sparse_rows

# How many numbers are held at once between two factors of a product.
_ENTRIES = 2_000_000


@dataclass(frozen=True)
class ProductMatrix:
    """The matrix [m, n1 n2 …] whose row i is the Kronecker product of the rows i of factors [m, n1], [m, n2], …"""

    factors: tuple[Array, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.factors[0]), math.prod(factor.shape[1] for factor in self.factors)

    def __matmul__(self, columns: Array) -> Array:
        """Return the product [m] or [m, k] with values [n] or columns [n, k]: one axis after the other."""
        if columns.ndim == 1:
            return np.asarray((self @ columns[:, None])[:, 0])
        rows, count = self.shape
        chunk = max(1, _ENTRIES * self.factors[0].shape[1] // max(count * columns.shape[1], 1))
        return np.concatenate(
            [self._rows(slice(at, at + chunk), columns) for at in range(0, max(rows, 1), chunk)]
        )

    def _rows(self, rows: slice, columns: Array) -> Array:
        first, *others = (factor[rows] for factor in self.factors)
        found = first @ columns.reshape(first.shape[1], -1)
        for factor in others:
            found = np.einsum("ma,mar->mr", factor, found.reshape(len(factor), factor.shape[1], -1))
        return found.reshape(len(first), -1)


@dataclass(frozen=True)
class BoxGrid:
    """The product of the nodes of axes, by name; the last axis varies fastest.

    Matrices are dense on a single spectral axis and sparse otherwise. Nodes at corners and edges belong to several
    parts, which are called `x-` and `x+` after the low and the high end of an axis.
    """

    axes: Mapping[str, Axis]

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of nodes along each axis."""
        return tuple(len(axis.nodes) for axis in self.axes.values())

    @cached_property
    def points(self) -> Array:
        """The nodes [n, d]."""
        along = np.meshgrid(*(axis.nodes for axis in self.axes.values()), indexing="ij")
        return np.stack([values.ravel() for values in along], axis=1)

    @cached_property
    def weights(self) -> Array:
        """The products of the weights along the axes [n]."""
        products = np.meshgrid(*(axis.weights for axis in self.axes.values()), indexing="ij")
        return np.asarray(np.prod(products, axis=0)).ravel()

    @cached_property
    def parts(self) -> Mapping[str, Indices]:
        """The two ends of every axis that is not periodic."""
        return {
            name + side: self._layer(name + side, 0)
            for name, axis in self.axes.items()
            if not axis.periodic
            for side in "-+"
        }

    def derivative(self, by: tuple[int, ...]) -> Any:
        """Return the Kronecker product [n, n] of the derivatives along the axes."""
        factors = [axis.derivative(order) for axis, order in zip(self.axes.values(), by, strict=True)]
        return factors[0] if self._dense else _kronecker(factors)

    def normal_derivative(self, part: str, order: int) -> Any:
        """Return the rows [k, n] of the derivative along the axis that ends at the part, outward."""
        by = tuple(order * (name == part[:-1]) for name in self.axes)
        sign = 1.0 if part[-1] == "+" else (-1.0) ** order
        return sign * self.derivative(by)[self.parts[part]]

    def replaced_nodes(self, part: str, count: int) -> Indices:
        """Return the nodes of the `count` outermost layers at a part, layer by layer."""
        return np.concatenate([self._layer(part, depth) for depth in range(count)])

    def interpolation(self, points: Array) -> Any:
        """Return the matrix [m, n] of products of the weights along the axes.

        Where all nodes have weights it is kept as its factors.
        """
        if len(self.axes) > 1 and all(axis.dense for axis in self.axes.values()):
            return ProductMatrix(
                tuple(_stencil(axis, points[:, i])[1] for i, axis in enumerate(self.axes.values()))
            )
        stencils = [_stencil(axis, points[:, i]) for i, axis in enumerate(self.axes.values())]
        nodes, weights = stencils[0]
        for (further, factors), size in zip(stencils[1:], self.shape[1:], strict=True):
            nodes = (nodes[:, :, None] * size + further[:, None, :]).reshape(len(points), -1)
            weights = (weights[:, :, None] * factors[:, None, :]).reshape(len(points), -1)
        return weights if self._dense else sparse_rows(nodes, weights, len(self.points))

    def resampling(self, count: int) -> Array | None:
        """Return the matrix [n - count, n] to Chebyshev nodes of the first kind, on a single Chebyshev axis."""
        axis, *others = self.axes.values()
        if others or not isinstance(axis, ChebyshevAxis):
            return None
        return axis.stencil(axis.inner_nodes(axis.count - count))[1]

    def from_inside(self) -> Any:
        """Return the matrix [n, f] that takes values at the nodes off the boundary to those of their polynomial.

        All axes with ends are to be Chebyshev axes.
        """
        factors = [
            axis.from_inside() if isinstance(axis, ChebyshevAxis) else np.eye(len(axis.nodes))
            for axis in self.axes.values()
        ]
        return _kronecker(factors)

    @property
    def _dense(self) -> bool:
        return len(self.axes) == 1 and all(axis.dense for axis in self.axes.values())

    def _layer(self, part: str, depth: int) -> Indices:
        """Return the nodes that lie `depth` nodes inside a part of the boundary."""
        axis = list(self.axes).index(part[:-1])
        nodes = np.arange(np.prod(self.shape)).reshape(self.shape)
        layer: Indices = np.take(nodes, depth if part[-1] == "-" else -1 - depth, axis).ravel()
        return layer


def _kronecker(factors: Iterable[Any]) -> Any:
    """Return the Kronecker product of matrices along the axes as a sparse one."""
    from scipy import sparse

    return reduce(lambda a, b: sparse.kron(a, b, format="csr"), map(sparse.csr_array, factors))


def _stencil(axis: Axis, points: Array) -> tuple[Indices, Array]:
    """Return the stencil of an axis, computed once for points that share a coordinate."""
    distinct, places = np.unique(points, return_inverse=True)
    nodes, weights = axis.stencil(distinct)
    return nodes[places], weights[places]
