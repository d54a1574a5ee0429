"""Conjugate gradients for `-div(a grad u) = f` on a square, preconditioned by a fast Poisson solver."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Coefficients between 3 and 12 take about 20 to a tolerance of 1e-8.
_MOST_ITERATIONS = 200
# Rows that are worked on together: intermediate results of so many stay in the cache.
_ROWS = 32


def solve_dirichlet(along_x: Array, along_y: Array, right: Array, tolerance: float = 1e-8) -> Array:
    """Return u [n+1, n+1] at the nodes of a square grid, zero on the boundary, of a five-point system.

    The equation of an inner node is: the sum over its four neighbours of `c (u - u_neighbour)` equals
    `right` [n-1, n-1], with the coefficients c `along_x` [n, n-1] and `along_y` [n-1, n] of the edges. The
    number of iterations grows with the contrast of the coefficients but not with n: the condition number is
    at most the contrast (e.g. Saad, Iterative Methods for Sparse Linear Systems, ch. 9). Stops where the
    error in the energy norm has fallen by `tolerance`, as far as the preconditioned residual shows; raises
    `ArithmeticError` if it does not.
    """
    apply = _five_point(along_x, along_y)
    return np.pad(_conjugate_gradients(apply, _sine_inverse(right.shape[0]), right, tolerance), 1)


def dual_norm(values: Array) -> float:
    """Return the norm of a function on n x n inner nodes that is dual to ||grad u||, up to a constant factor.

    For `A u = values` with the five-point Laplacian A (times -h^2) it is `sqrt(u . A u)`.
    """
    size = float(np.abs(values).max()) or 1.0
    scaled = values / size
    return size * float(np.sqrt(np.vdot(scaled, _sine_inverse(len(values))(scaled))))


def _five_point(along_x: Array, along_y: Array) -> Callable[[Array], Array]:
    """Return the operator of the five-point system; each result is overwritten by the next."""
    diagonal = along_x[1:] + along_x[:-1] + along_y[:, 1:] + along_y[:, :-1]
    inner_y, result = along_y[:, 1:-1], np.empty_like(diagonal)
    wide = np.zeros((len(diagonal) + 2, len(diagonal)))

    def apply(u: Array) -> Array:
        wide[1:-1] = u
        for rows in _blocks(len(u)):
            below = slice(rows.start + 1, rows.stop + 1)
            part = diagonal[rows] * u[rows]
            part -= along_x[rows] * wide[rows]
            part -= along_x[below] * wide[rows.start + 2 : rows.stop + 2]
            part[:, :-1] -= inner_y[rows] * u[rows, 1:]
            part[:, 1:] -= inner_y[rows] * u[rows, :-1]
            result[rows] = part
        return result

    return apply


def _conjugate_gradients(
    apply: Callable[[Array], Array], precondition: Callable[[Array], Array], right: Array, tolerance: float
) -> Array:
    solution, rest = np.zeros_like(right), right.copy()
    direction = precondition(rest).copy()
    size = first = _inner(rest, direction)
    if first == 0:
        return solution
    for _ in range(_MOST_ITERATIONS):
        image = apply(direction)
        step = size / _inner(direction, image)
        for rows in _blocks(len(right)):
            solution[rows] += step * direction[rows]
            rest[rows] -= step * image[rows]
        corrected = precondition(rest)
        previous, size = size, _inner(rest, corrected)
        if size <= tolerance**2 * first:
            return solution
        for rows in _blocks(len(right)):
            direction[rows] = size / previous * direction[rows] + corrected[rows]
    raise ArithmeticError(
        f"conjugate gradients did not reach {tolerance:g} in {_MOST_ITERATIONS} iterations; "
        "is the contrast of the coefficient too large, or does its sign change?"
    )


def _blocks(n: int) -> list[slice]:
    """Return slices of n rows that are short enough for intermediate results to stay in the cache."""
    return [slice(start, min(start + _ROWS, n)) for start in range(0, n, _ROWS)]


def _inner(one: Array, other: Array) -> float:
    """Return the inner product without BLAS, whose threads would compete with those of other samples."""
    return float(np.einsum("ij,ij->", one, other))


def _sine_inverse(n: int) -> Callable[[Array], Array]:
    """Return the inverse of the five-point Laplacian (times -h^2) on n x n inner nodes.

    It works in single precision: as a preconditioner it costs half as much and no further iterations. Each
    result is overwritten by the next.
    """
    from scipy.fft import dstn

    waves = 4 * np.sin(np.pi * np.arange(1, n + 1) / (2 * (n + 1))) ** 2
    scaling = (1 / ((waves[:, None] + waves) * (2 * (n + 1)) ** 2)).astype(np.float32)
    single, double = np.empty((n, n), np.float32), np.empty((n, n))

    def invert(right: Array) -> Array:
        size = max(right.max(), -right.min()) or 1.0
        np.divide(right, size, out=single, casting="same_kind")
        transformed = dstn(single, type=1, overwrite_x=True)
        transformed *= scaling
        return np.multiply(dstn(transformed, type=1, overwrite_x=True), size, out=double)

    return invert
