"""The functions of exponential integrators: phi_0(z) = e^z and phi_k(z) = (phi_{k-1}(z) - 1/(k-1)!) / z.

They are taken of many numbers, or of many small matrices, at once. The formula above cancels near zero: of numbers it
is used where |z| is at least 1, and upside down elsewhere, from a Taylor series of the last phi function. Of matrices
a Taylor series at z / 2^s is doubled s times by

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
# A real part below this share of the largest eigenvalue is a rounding error.
_NOTHING = 1e-9
# From this size on numbers are not small, and so many terms of their Taylor series are taken.
_UNIT = 1.0
_TERMS = 17


@dataclass(frozen=True)
class LinearOperator:
    """One matrix for each Fourier mode: `values` are [c, ...] where all are diagonal, else [..., c, c]."""

    values: Any
    diagonal: bool

    def apply(self, vectors: Complex) -> Complex:
        """Return the product with vectors [c, ...]."""
        if self.diagonal:
            return np.asarray(self.values * vectors)
        return np.moveaxis((self.values @ np.moveaxis(vectors, 0, -1)[..., None])[..., 0], -1, 0)

    def phis(self, lengths: tuple[float, ...], count: int) -> list[list[LinearOperator]]:
        """Return phi_0 to phi_count of each length times the operator; lengths are in ratios of powers of two."""
        if self.diagonal:
            return [
                [LinearOperator(values, True) for values in _phis_of(length * self.values, count)]
                for length in lengths
            ]
        shortest = min(lengths)
        levels = [round(log2(length / shortest)) for length in lengths]
        scale = shortest * self._size()
        halvings = max(0, ceil(log2(scale / _SMALL))) if scale > 0 else 0
        found = self._series(shortest / 2**halvings, count)
        chain: list[list[Complex]] = []
        for step in range(halvings + max(levels) + 1):
            if step:
                found = self._doubled(found)
            if step >= halvings:
                chain.append(found)
        return [[LinearOperator(values, False) for values in chain[level]] for level in levels]

    @property
    def damps(self) -> bool:
        """Whether any eigenvalues have a real part beside those of rounding errors."""
        traces = self.values if self.diagonal else np.einsum("...ii->...", self.values)
        return bool(np.any(np.abs(np.real(traces)) > _NOTHING * np.max(np.abs(self.values), initial=0.0)))

    def resolvent(self, length: float) -> LinearOperator:
        """Return the inverse of 1 less a length times the operator."""
        if self.diagonal:
            return LinearOperator(1 / (1 - length * self.values), True)
        return LinearOperator(np.linalg.inv(self._identity - length * self.values), False)

    def _size(self) -> float:
        return float(np.max(np.abs(self.values).sum(axis=-1), initial=0.0))

    @property
    def _identity(self) -> Any:
        return np.eye(self.values.shape[-1])

    def _series(self, length: float, count: int) -> list[Complex]:
        z = length * self.values
        found = []
        for k in range(count + 1):
            total = np.zeros_like(z) + self._identity / factorial(k + _DEGREE)
            for j in range(_DEGREE - 1, -1, -1):
                total = total @ z + self._identity / factorial(k + j)
            found.append(total)
        return found

    def _doubled(self, phis: list[Complex]) -> list[Complex]:
        found = [phis[0] @ phis[0]]
        for k in range(1, len(phis)):
            terms = [phis[j] / factorial(k - j) for j in range(1, k + 1)]
            found.append((phis[0] @ phis[k] + sum(terms[1:], terms[0])) / 2**k)
        return found


def _phis_of(z: Any, count: int) -> list[Any]:
    """Return phi_0 to phi_count of numbers."""
    small = np.abs(z) < _UNIT
    near, far = z[small], np.where(small, 1.0, z)
    found = [np.exp(z)]
    for k in range(1, count + 1):
        found.append((found[-1] - 1 / factorial(k - 1)) / far)
    last = np.zeros_like(near)
    for j in range(_TERMS, -1, -1):
        last = last * near + 1 / factorial(count + j)
    for k in range(count, 0, -1):
        found[k][small] = last
        last = near * last + 1 / factorial(k - 1)
    return found
