"""Derivatives of values on the nodes of a rectangular grid that lie in a plane domain: disk, polygon, union and so on.

At nodes with neighbours on all sides they are differences along the rows and columns of nodes within the domain
(B. Fornberg, Math. Comp. 51, 1988). On the boundary and elsewhere they are those of a polynomial that is fitted to the
nearest nodes by weighted least squares (P. Lancaster and K. Salkauskas, Math. Comp. 37, 1981).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import BoxDomain, Problem
from sharp.solvers import fornberg_weights

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Points of a difference where a line has as many.
_MOST = 9
# Points of a fit for each coefficient of its polynomial.
_NODES_EACH = 2.2


@lru_cache(maxsize=16)
def inside_mask(problem: Problem, counts: tuple[int, ...]) -> Mask:
    """Return which points of the output grid with these numbers along the axes lie in the domain or on its edge."""
    if isinstance(problem.domain, BoxDomain):
        return np.ones(counts, bool)
    points = np.stack([grid.ravel() for grid in np.meshgrid(*_axes(problem, counts), indexing="ij")], axis=1)
    return problem.domain.inside(points).reshape(counts)


def _axes(problem: Problem, counts: tuple[int, ...]) -> list[Array]:
    """Return the output points along each axis."""
    from sharp.solvers import axis_points  # loads sympy, which a worker of a box never needs

    return [axis_points(problem, name, count) for name, count in zip(problem.space, counts, strict=True)]


def within_domain(problem: Problem, values: NDArray[Any]) -> NDArray[Any]:
    """Return values [..., points along each axis] with 0 at points outside of the domain, where nothing counts."""
    if isinstance(problem.domain, BoxDomain):
        return values
    dimension = len(problem.space)
    return np.where(inside_mask(problem, values.shape[-dimension:]), values, values.dtype.type(0))


@dataclass(frozen=True)
class PlaneNodes:
    """The nodes of a grid [n, 2] that lie in a plane domain, in the order of `mask`, and the spacing along the axes."""

    mask: Mask
    points: Array
    spacing: tuple[float, float]

    @classmethod
    def of(cls, problem: Problem, counts: tuple[int, ...]) -> PlaneNodes:
        """Return the nodes of a problem's output grid with so many points along each axis."""
        axes = _axes(problem, counts)
        mask = inside_mask(problem, counts)
        points = np.stack([grid[mask] for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
        first, second = (float(axis[1] - axis[0]) for axis in axes)
        return cls(mask, points, (first, second))

    def inner(self, order: int) -> NDArray[np.intp]:
        """Return the nodes with neighbours on all sides, in rows and columns that give derivatives of this order."""
        padded = np.pad(self.mask, 1)
        whole = self.mask & padded[2:, 1:-1] & padded[:-2, 1:-1] & padded[1:-1, 2:] & padded[1:-1, :-2]
        for axis in (0, 1):
            whole &= _lengths(self.mask, axis) >= order + 3
        return np.flatnonzero(whole[self.mask])

    def differences(self, axis: int, order: int, fewer: int) -> csr_array:
        """Return the matrix [n, n] of a derivative along an axis, from so many points fewer than there could be.

        Rows of nodes in too short a line are NaN.
        """
        return _differences(self.mask.tobytes(), self.mask.shape, self.spacing[axis], axis, order, fewer)

    def fitted(self, places: Array, orders: tuple[int, int], degree: int) -> csr_array:
        """Return the matrix [p, n] of a derivative at any places [p, 2], of fits of a degree to the nearest nodes."""
        from scipy.sparse import csr_array
        from scipy.spatial import KDTree

        powers = [(i, j) for i, j in product(range(degree + 1), repeat=2) if i + j <= degree]
        count = min(round(_NODES_EACH * len(powers)), len(self.points))
        scaled = self.points / self.spacing
        found = KDTree(scaled).query(places / np.array(self.spacing), count)
        distances, nearest = np.asarray(found[0]), np.asarray(found[1])
        column, size = powers.index(orders), float(np.prod(np.power(self.spacing, orders)))
        rows = np.empty((len(places), count))
        for number, (place, near, away) in enumerate(zip(places, nearest, distances, strict=True)):
            offset, reach = (self.points[near] - place) / self.spacing, float(away[-1])
            weight = np.exp(-((2 * away / reach) ** 2))
            basis = np.stack(
                [offset[:, 0] ** i * offset[:, 1] ** j / reach ** (i + j) for i, j in powers], axis=1
            )
            solved = np.linalg.pinv(weight[:, None] * basis)[column] * weight
            rows[number] = solved * factorial(orders[0]) * factorial(orders[1]) / reach ** sum(orders) / size
        index = np.repeat(range(len(places)), count)
        return csr_array((rows.ravel(), (index, nearest.ravel())), (len(places), len(self.points)))


def _lengths(mask: Mask, axis: int) -> NDArray[np.intp]:
    """Return for each point the number of nodes in the unbroken line along an axis that it belongs to."""
    found = np.zeros(mask.shape, np.intp)
    lines, lengths = np.moveaxis(mask, axis, -1), np.moveaxis(found, axis, -1)
    for line, length in zip(lines.reshape(-1, lines.shape[-1]), _rows_of(lengths), strict=True):
        for start, end in _runs(line):
            length[start:end] = end - start
    return found


def _rows_of(values: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    return [values[place] for place in np.ndindex(values.shape[:-1])]


def _runs(line: Mask) -> list[tuple[int, int]]:
    steps = np.flatnonzero(np.diff(np.concatenate([[0], line.astype(np.int8), [0]])))
    return [(int(start), int(end)) for start, end in zip(steps[::2], steps[1::2], strict=True)]


@lru_cache(maxsize=64)
def _differences(
    packed: bytes, shape: tuple[int, ...], spacing: float, axis: int, order: int, fewer: int
) -> csr_array:
    from scipy.sparse import csr_array

    mask = np.frombuffer(packed, bool).reshape(shape)
    numbers = np.full(shape, -1)
    numbers[mask] = range(int(mask.sum()))
    rows, columns, weights = [], [], []
    for own in np.moveaxis(numbers, axis, -1).reshape(-1, shape[axis]):
        for start, end in _runs(own >= 0):
            points = min(_MOST, end - start) - fewer
            for place in range(start, end):
                rows.append(own[place])
                if points < order + 1:
                    columns.append([own[place]])
                    weights.append([np.nan])
                    continue
                first = min(max(place - (points - 1) // 2, start), end - points)
                window = range(first, first + points)
                columns.append([own[index] for index in window])
                weights.append(list(fornberg_weights(tuple(index - place for index in window), order)))
    index = np.repeat(rows, [len(each) for each in columns])
    values = np.concatenate(weights) / spacing**order
    number = int(mask.sum())
    return csr_array((values, (index, np.concatenate(columns))), (number, number))
