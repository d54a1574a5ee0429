"""Fourier modes of a periodic box: derivatives, products without aliasing, and values at points.

Coefficients are [..., n_1, ..., n_d]: of the modes of all signs along every axis but the last, in the order of
`numpy.fft`, and of those that are not negative along the last one; the functions are real.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.solvers.grid import Array

Complex = NDArray[np.complex128]

# Between its nodes a function is found by a kernel that reaches over so many of them, on a grid of twice as many; its
# shape is that of A. H. Barnett, J. Magland and L. af Klinteberg, SIAM J. Sci. Comput. 41, 2019, eq. 1.8.
_WIDTH = 14
_SHAPE = 2.30 * _WIDTH
_QUADRATURE = 48
# At so few points of the plane or of space modes are summed one by one.
_FEW = 160


@dataclass(frozen=True)
class FourierModes:
    """The modes -m, ..., m along each axis of a box, where m is `highest`.

    Products are taken on `finer` times as many nodes as there are modes.
    """

    bounds: Mapping[str, tuple[float, float]]
    highest: int
    finer: float

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of the coefficients of one function."""
        return (*(2 * self.highest + 1,) * (self.dimension - 1), self.highest + 1)

    @property
    def dimension(self) -> int:
        """The number of axes."""
        return len(self.bounds)

    @cached_property
    def nodes(self) -> int:
        """The number of nodes along each axis on which products are taken."""
        from scipy.fft import next_fast_len

        return int(next_fast_len(int(np.ceil(self.finer * (2 * self.highest + 1))), real=True))

    @cached_property
    def numbers(self) -> tuple[Array, ...]:
        """The wave number along each axis, shaped to broadcast against coefficients."""
        return tuple(
            np.asarray(2 * np.pi / (high - low) * counts, dtype=float)
            for counts, (low, high) in zip(self.counts, self.bounds.values(), strict=True)
        )

    @cached_property
    def counts(self) -> tuple[NDArray[np.intp], ...]:
        """How many waves a mode has along each axis, shaped to broadcast against coefficients."""
        along = [self._signed] * (self.dimension - 1) + [np.arange(self.highest + 1)]
        return tuple(np.meshgrid(*along, indexing="ij", sparse=True))

    @cached_property
    def points(self) -> list[Array]:
        """The nodes of each axis, shaped to broadcast against values."""
        along = [
            low + (high - low) * np.arange(self.nodes) / self.nodes for low, high in self.bounds.values()
        ]
        return list(np.meshgrid(*along, indexing="ij", sparse=True))

    def derivative(self, by: tuple[int, ...]) -> Complex:
        """Return the factors [n_1, ..., n_d] of a derivative."""
        found: Any = np.ones((1,) * self.dimension, dtype=complex)
        for number, order in zip(self.numbers, by, strict=True):
            found = found * (1j * number) ** order
        return np.broadcast_to(found, self.shape)

    def values(self, coefficients: Complex) -> Array:
        """Return the values [..., nodes, ...] of functions by their coefficients."""
        return self._values(coefficients, self.nodes)

    def coefficients(self, values: Array) -> Complex:
        """Return the coefficients of functions by their values, without the modes above the highest."""
        from scipy.fft import rfftn

        whole = rfftn(values, axes=self._axes, norm="forward")
        found = np.empty((*values.shape[: -self.dimension], *self.shape), dtype=complex)
        for kept, place in self._blocks(self.nodes):
            found[kept] = whole[place]
        return found

    def norms(self, coefficients: Complex) -> Array:
        """Return the root mean square of functions [c] by their coefficients [c, ...]."""
        squares = np.abs(coefficients) ** 2
        squares[..., 1:] *= 2
        return np.asarray(np.sqrt(squares.reshape(len(squares), -1).sum(axis=1)))

    @cached_property
    def outermost(self) -> NDArray[np.bool_]:
        """Which modes are among the last tenth along some axis, or the last two."""
        start = min(0.9 * self.highest, self.highest - 1)
        found: Any = np.zeros((1,) * self.dimension, dtype=bool)
        for counts in self.counts:
            found = found | (np.abs(counts) >= start)
        return np.broadcast_to(found, self.shape)

    def at(self, points: Array) -> Callable[[Complex], Array]:
        """Return the function that takes coefficients [..., n_1, ..., n_d] to values [..., m] at points [m, d]."""
        shares = [
            ((points[:, index] - low) / (high - low)) % 1.0
            for index, (low, high) in enumerate(self.bounds.values())
        ]
        if self.dimension > 1 and len(points) > _FEW:
            return self._by_kernel(shares)
        *others, last = shares
        waves = [np.exp(2j * np.pi * np.outer(np.arange(self.highest + 1), last))]
        waves[0][1:] *= 2
        waves += [np.exp(2j * np.pi * np.outer(self._signed, share)) for share in reversed(others)]

        def values(coefficients: Complex) -> Array:
            found = coefficients @ waves[0]
            for own in waves[1:]:
                found = np.einsum("...nm,nm->...m", found, own)
            return np.asarray(found.real)

        return values

    def _by_kernel(self, shares: list[Array]) -> Callable[[Complex], Array]:
        from sharp.solvers.matrices import sparse_rows

        count = max(2 * (2 * self.highest + 1), 2 * _WIDTH)
        factors: Any = 1.0
        for number, (low, high) in zip(self.numbers, self.bounds.values(), strict=True):
            factors = factors * _transform(number * (high - low) / count)
        columns: Any = np.zeros((len(shares[0]), 1), dtype=np.intp)
        weights: Any = np.ones((len(shares[0]), 1))
        for share in shares:
            first = np.ceil(share * count - _WIDTH / 2).astype(np.intp)
            near = first[:, None] + np.arange(_WIDTH)
            own = _kernel((near - share[:, None] * count) / (_WIDTH / 2))
            columns = (columns[:, :, None] * count + (near % count)[:, None, :]).reshape(len(share), -1)
            weights = (weights[:, :, None] * own[:, None, :]).reshape(len(share), -1)
        matrix = sparse_rows(columns, weights, count**self.dimension)

        def values(coefficients: Complex) -> Array:
            lead = coefficients.shape[: -self.dimension]
            grid = self._values(coefficients / factors, count).reshape(-1, count**self.dimension)
            return np.asarray((matrix @ grid.T).T.reshape(*lead, -1))

        return values

    def _values(self, coefficients: Complex, nodes: int) -> Array:
        from scipy.fft import irfftn

        lead = coefficients.shape[: -self.dimension]
        full = np.zeros((*lead, *(nodes,) * (self.dimension - 1), nodes // 2 + 1), dtype=complex)
        for kept, place in self._blocks(nodes):
            full[place] = coefficients[kept]
        return np.asarray(irfftn(full, s=(nodes,) * self.dimension, axes=self._axes, norm="forward"))

    @property
    def _axes(self) -> tuple[int, ...]:
        return tuple(range(-self.dimension, 0))

    @property
    def _signed(self) -> NDArray[np.intp]:
        return np.concatenate([np.arange(self.highest + 1), np.arange(-self.highest, 0)])

    def _blocks(self, nodes: int) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
        """Yield where blocks of kept modes are, among the coefficients and among all modes of a grid."""
        ends = (slice(0, self.highest + 1), slice(0, self.highest + 1))
        below = (slice(self.highest + 1, None), slice(nodes - self.highest, None))
        for chosen in product((ends, below), repeat=self.dimension - 1):
            pairs = (*chosen, ends)
            yield (..., *(pair[0] for pair in pairs)), (..., *(pair[1] for pair in pairs))


def _kernel(shares: Array) -> Array:
    inside = np.clip(1 - shares**2, 0.0, None)
    return np.where(np.abs(shares) <= 1, np.exp(_SHAPE * (np.sqrt(inside) - 1)), 0.0)


def _transform(angles: Array) -> Array:
    """Return the Fourier transform of the kernel at wave numbers per node."""
    nodes, weights = np.polynomial.legendre.leggauss(2 * _QUADRATURE)
    waves = np.cos(np.multiply.outer(angles, nodes * _WIDTH / 2))
    return np.asarray(_WIDTH / 2 * (waves @ (weights * _kernel(nodes))))
