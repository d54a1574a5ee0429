"""Values at the faces of equal cells by their averages: of order 5 by WENO, of order 2 by limited slopes."""

from __future__ import annotations

from typing import Any

import numpy as np

from sharp.solvers.grid import Array

GHOSTS = 3

# Averages over cells below this size, squared, count as smooth.
_SMALL = 1e-40


def face_values(averages: Array) -> tuple[Array, Array]:
    """Return the values [..., n + 1] on the left and the right of every face of n cells, of order 5 where smooth.

    `averages` [..., n + 6] has three ghost cells at each end. WENO-Z: R. Borges, M. Carmona, B. Costa and
    W. S. Don, J. Comput. Phys. 227, 2008.
    """
    count = averages.shape[-1] - 2 * GHOSTS + 1
    cells = [averages[..., shift : shift + count] for shift in range(2 * GHOSTS)]
    return _upwind(*cells[:5]), _upwind(*cells[:0:-1])


def _upwind(a: Array, b: Array, c: Array, d: Array, e: Array) -> Array:
    """Return the value at the face between cells c and d, seen from c."""
    rough = (
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    )
    whole = (rough[0] - rough[2]) ** 2
    first, second, third = (
        share * (1 + whole / (_SMALL + part**2)) for share, part in zip((1, 6, 3), rough, strict=True)
    )
    total = first * (2 * a - 7 * b + 11 * c) + second * (5 * c - b + 2 * d) + third * (2 * c + 5 * d - e)
    return np.asarray(total / (6 * (first + second + third)))


def limited_face_values(averages: Array) -> tuple[Array, Array]:
    """Return the values [..., n + 1] on both sides of every face by lines through the averages [..., n + 6].

    Slopes are van Leer's harmonic means of the differences to both neighbours, 0 at extrema (B. van Leer,
    J. Comput. Phys. 32, 1979).
    """
    count = averages.shape[-1] - 2 * GHOSTS + 1
    near = averages[..., GHOSTS - 2 : GHOSTS + count + 1]
    steps = np.diff(near, axis=-1)
    below, above = steps[..., :-1], steps[..., 1:]
    product = below * above
    half = np.where(product > 0, product, 0.0) / (below + above + (product <= 0))
    middle = near[..., 1:-1]
    return (middle + half)[..., :-1], (middle - half)[..., 1:]


def parabola(left: Array, mean: Array, right: Array, share: Array) -> Array:
    """Return at a share of the way through a cell the parabola with the given mean and values at both faces.

    P. Colella and P. R. Woodward, The piecewise parabolic method, J. Comput. Phys. 54, 1984, eq. 1.4.
    """
    bend: Any = 6 * mean - 3 * (left + right)
    return np.asarray(left + share * (right - left + bend * (1 - share)))
