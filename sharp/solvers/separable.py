"""Matrices on tensor grids that act along one axis at a time, and systems with them in a few matrix products.

With constant coefficients and derivatives along single axes, the matrix of a field is a sum of Kronecker products
A ⊗ I ⊗ I + I ⊗ B ⊗ I + I ⊗ I ⊗ C. Its eigenvectors are products of those of A, B and C, and a system of n**d
unknowns is solved by 2d products with matrices [n, n] (R. E. Lynch, J. R. Rice and D. H. Thomas, Direct solution of
partial difference equations by tensor product methods, Numer. Math. 6, 1964). Several fields are solved for together,
mode by mode, where all their blocks are combinations of the same A, B and C.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.solvers.grid import Array, Indices

Solve = Callable[[NDArray[Any]], NDArray[Any]]

# What two ways of adding up the same matrix may differ by, relative to its largest entry.
_ROUNDING = 1e-10
_PROBES = 2
# Up to this condition of the eigenvectors, systems come out right after a step of iterative refinement.
_CONDITION = 1e7
_REFINED = 1e2
# A mode whose factor is smaller than this share of the largest one is not determined.
_SINGULAR = 1e-14


class Separable(ABC):
    """A sparse matrix `whole` [c * n, c * n] for c fields on n free nodes, `counts` of them along each axis."""

    whole: Any
    counts: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        rows, columns = self.whole.shape
        return rows, columns

    def solver(self, shift: complex = 0.0, sign: float = 1.0) -> Solve | None:
        """Return the function that solves systems with `shift I + sign whole`, None where that is singular.

        Right sides are [m] or [m, k].
        """
        found = self._directly(shift, sign)
        if found is None:
            return None
        once: Solve = found

        def solve(right: NDArray[Any]) -> NDArray[Any]:
            first = once(right)
            return first + once(right - shift * first - sign * (self.whole @ first))

        return solve if self._rough else once

    @property
    @abstractmethod
    def _rough(self) -> bool:
        """Whether a solution takes a step of iterative refinement."""

    @abstractmethod
    def _directly(self, shift: complex, sign: float) -> Solve | None:
        """Return the solver without refinement."""


@dataclass(frozen=True)
class Diagonalised(Separable):
    """`vectors` and `inverses` are the eigenvectors along each axis, and `modes` [n, c, c] the small matrices that are
    left for each product of eigenvectors.
    """

    whole: Any
    counts: tuple[int, ...]
    vectors: tuple[NDArray[Any], ...]
    inverses: tuple[NDArray[Any], ...]
    modes: NDArray[Any]
    refined: bool

    @property
    def _rough(self) -> bool:
        return self.refined

    def _directly(self, shift: complex, sign: float) -> Solve | None:
        fields = self.modes.shape[1]
        small = sign * self.modes + shift * np.eye(fields)
        sizes = np.abs(np.linalg.det(small)) if fields > 1 else np.abs(small[:, 0, 0])
        if sizes.min() <= _SINGULAR**fields * sizes.max():
            return None
        inverted = np.linalg.inv(small)

        def once(right: NDArray[Any]) -> NDArray[Any]:
            columns = right.reshape(fields, *self.counts, -1)
            spread = _along(self.inverses, columns).reshape(fields, len(self.modes), -1)
            found = np.einsum("nab,bnk->ank", inverted, spread).reshape(columns.shape)
            values = _along(self.vectors, found).reshape(right.shape)
            return values if np.iscomplexobj(shift) or np.iscomplexobj(right) else values.real

        return once


@dataclass(frozen=True)
class Triangular(Separable):
    """One field on two axes by the Schur forms Q T Q^H of both matrices, which exist whatever the eigenvectors are.

    A system is a Sylvester equation (R. H. Bartels and G. W. Stewart, Comm. ACM 15, 1972).
    """

    whole: Any
    counts: tuple[int, ...]
    triangles: tuple[NDArray[Any], NDArray[Any]]
    unitary: tuple[NDArray[Any], NDArray[Any]]

    @property
    def _rough(self) -> bool:
        return True

    def _directly(self, shift: complex, sign: float) -> Solve | None:
        from scipy.linalg.lapack import ztrsyl

        (first, second), (left, right) = self.triangles, self.unitary
        first = np.asfortranarray(sign * first + shift * np.eye(len(first)))
        # trsyl takes the second matrix from the right: X T is as well X (T^T)^T.
        second = np.asfortranarray((sign * second).conj())
        sums = np.abs(np.diag(first)[:, None] + np.diag(second).conj())
        if sums.min() <= _SINGULAR * sums.max():
            return None

        def single(values: NDArray[Any]) -> NDArray[Any]:
            inner = left.conj().T @ values.reshape(self.counts) @ right.conj()
            found, scale, _ = ztrsyl(first, second, np.asfortranarray(inner), tranb="C")
            return np.asarray(left @ (found / scale) @ right.T).ravel()

        def once(values: NDArray[Any]) -> NDArray[Any]:
            columns = values.reshape(len(values), -1).astype(complex)
            found = np.stack([single(column) for column in columns.T], axis=1).reshape(values.shape)
            return found if np.iscomplexobj(shift) or np.iscomplexobj(values) else found.real

        return once


def _along(matrices: Sequence[NDArray[Any]], values: NDArray[Any]) -> NDArray[Any]:
    """Apply a matrix along each axis of values [c, n1, ..., nd, k]."""
    for axis, matrix in enumerate(matrices, start=1):
        values = _along_one(matrix, values, axis)
    return values


def _along_one(matrix: NDArray[Any], values: NDArray[Any], axis: int) -> NDArray[Any]:
    return np.moveaxis(np.tensordot(matrix, values, axes=(1, axis)), 0, axis)


def separated(whole: Any, counts: tuple[int, ...], fields: int) -> Separable | None:
    """Return a sparse matrix [c * n, c * n] on free nodes of a tensor grid as a separable one, None where it is none.

    Whether it is, is seen by adding its parts up again.
    """
    size = int(np.prod(counts))
    rows = whole.tocsr()
    blocks = [
        [rows[a * size : (a + 1) * size, b * size : (b + 1) * size] for b in range(fields)]
        for a in range(fields)
    ]
    lines = [[_lines(block, counts) for block in row] for row in blocks]
    if not all(
        _agree(block, parts, counts, abs(rows).max())
        for row, found in zip(blocks, lines, strict=True)
        for block, parts in zip(row, found, strict=True)
    ):
        return None
    axes, shares = [], []
    for axis in range(len(counts)):
        common = _common([[parts[axis] for parts in row] for row in lines])
        if common is None:
            return None
        axes.append(common[0])
        shares.append(common[1:])
    pairs = [np.linalg.eig(matrix) for matrix in axes]
    conditions = [np.linalg.cond(vectors) for _, vectors in pairs]
    if max(conditions) > _CONDITION:
        return _triangular(rows, counts, lines[0][0]) if fields == 1 and len(counts) == 2 else None
    modes = sum(
        factors * _spread(values, axis, counts)[:, None, None] + constants
        for axis, ((values, _), (factors, constants)) in enumerate(zip(pairs, shares, strict=True))
    )
    inverses = tuple(np.linalg.inv(vectors) for _, vectors in pairs)
    vectors = tuple(vectors for _, vectors in pairs)
    return Diagonalised(rows, counts, vectors, inverses, np.asarray(modes), max(conditions) > _REFINED)


def _triangular(whole: Any, counts: tuple[int, ...], parts: Sequence[Array]) -> Triangular:
    from scipy.linalg import schur

    (first, left), (second, right) = (schur(part, output="complex") for part in parts)
    return Triangular(whole, counts, (first, second), (left, right))


def _lines(block: Any, counts: tuple[int, ...]) -> list[Array]:
    """Return matrices along the axes, by the lines through the first node, whose Kronecker sum the block may be."""
    first, dimension = float(block[0, 0]), len(counts)
    found = []
    for axis, count in enumerate(counts):
        stride = int(np.prod(counts[axis + 1 :]))
        line: Indices = stride * np.arange(count)
        matrix = block[line][:, line].toarray()
        found.append(matrix - first * (dimension - 1) / dimension * np.eye(count))
    return found


def _agree(block: Any, parts: Sequence[Array], counts: tuple[int, ...], largest: float) -> bool:
    """Whether a block is the sum of its parts: by what both make of random vectors."""
    vectors = np.random.default_rng(5).normal(size=(1, *counts, _PROBES))
    added = sum(_along_one(part, vectors, axis) for axis, part in enumerate(parts, start=1))
    left = block @ vectors.reshape(-1, _PROBES) - np.asarray(added).reshape(-1, _PROBES)
    return bool(np.abs(left).max() <= _ROUNDING * largest * max(counts))


def _common(matrices: Sequence[Sequence[Array]]) -> tuple[Array, Array, Array] | None:
    """Return one matrix, factors and constants [c, c] such that each is `factor * matrix + constant I`, or None."""
    fields = len(matrices)
    flat = [each - each[0, 0] * np.eye(len(each)) for row in matrices for each in row]
    sizes = [float(np.linalg.norm(each)) for each in flat]
    reference = flat[int(np.argmax(sizes))]
    weight = float(np.sum(reference**2)) or 1.0
    factors = np.array([float(np.sum(each * reference)) / weight for each in flat])
    if any(
        np.abs(each - factor * reference).max() > _ROUNDING * np.abs(reference).max()
        for each, factor in zip(flat, factors, strict=True)
    ):
        return None
    constants = np.array([each[0, 0] for row in matrices for each in row])
    return reference, factors.reshape(fields, fields), constants.reshape(fields, fields)


def _spread(values: NDArray[Any], axis: int, counts: tuple[int, ...]) -> NDArray[Any]:
    """Return values along an axis at all modes [n]."""
    shape = [1] * len(counts)
    shape[axis] = counts[axis]
    return np.broadcast_to(values.reshape(shape), counts).ravel()
