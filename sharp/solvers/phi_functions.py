"""The functions of exponential integrators: phi_0(z) = e^z and phi_k(z) = (phi_{k-1}(z) - 1/(k-1)!) / z.

They are taken of many numbers, or of many small matrices, at once. The formula above cancels near zero; here a Taylor
series at z / 2^s is doubled s times by

    2^k phi_k(2z) = e^z phi_k(z) + sum over j = 1..k of phi_j(z) / (k - j)!,

which cancels nowhere and needs no contour (N. J. Higham, Functions of Matrices, 2008, 10.7.4; B. Skaflestad and
W. M. Wright, Appl. Numer. Math. 59, 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, factorial, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

Complex = NDArray[np.complex128]

# The Taylor series is taken where arguments are below this size, and to this degree, which leaves 1e-16.
_SMALL = 0.5
_DEGREE = 14


@dataclass(frozen=True)
class LinearOperator:
    """One matrix for each Fourier mode: `values` are [c, ...] where all are diagonal, else [..., c, c]."""

    values: Complex
    diagonal: bool

    def apply(self, vectors: Complex) -> Complex:
        """Return the product with vectors [c, ...]."""
        if self.diagonal:
            return np.asarray(self.values * vectors)
        return np.moveaxis(self._product(self.values, np.moveaxis(vectors, 0, -1)[..., None])[..., 0], -1, 0)

    def phis(self, lengths: tuple[float, ...], count: int) -> list[list[LinearOperator]]:
        """Return phi_0 to phi_count of each length times the operator; lengths are in ratios of powers of two."""
        shortest = min(lengths)
        levels = [round(log2(length / shortest)) for length in lengths]
        scale = shortest * self._size()
        halvings = max(0, ceil(log2(scale / _SMALL))) if scale > 0 else 0
        found = self._series(shortest / 2**halvings, count)
        chain: list[list[Complex]] = []
        for step in range(halvings + max(levels) + 1):
            if step:
                found = self._doubled(found, shortest / 2**halvings * 2**step)
            if step >= halvings:
                chain.append(found)
        return [[LinearOperator(values, self.diagonal) for values in chain[level]] for level in levels]

    def _size(self) -> float:
        sizes = np.abs(self.values)
        return float(np.max(sizes if self.diagonal else sizes.sum(axis=-1), initial=0.0))

    def _product(self, a: Complex, b: Complex) -> Complex:
        return np.asarray(a * b if self.diagonal else a @ b)

    @property
    def _identity(self) -> Any:
        return 1.0 if self.diagonal else np.eye(self.values.shape[-1])

    def _series(self, length: float, count: int) -> list[Complex]:
        z = length * self.values
        found = []
        for k in range(count + 1):
            total = np.zeros_like(z) + self._identity / factorial(k + _DEGREE)
            for j in range(_DEGREE - 1, -1, -1):
                total = self._product(total, z) + self._identity / factorial(k + j)
            found.append(total)
        return found

    def _doubled(self, phis: list[Complex], length: float) -> list[Complex]:
        power = np.exp(length * self.values) if self.diagonal else self._product(phis[0], phis[0])
        found = [np.asarray(power)]
        for k in range(1, len(phis)):
            terms = [phis[j] / factorial(k - j) for j in range(1, k + 1)]
            found.append((self._product(phis[0], phis[k]) + sum(terms[1:], terms[0])) / 2**k)
        return found
