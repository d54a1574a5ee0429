"""Values at the faces of equal cells by their averages: of order 5 by WENO, of order 2 by limited slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sharp.solvers.grid import Array

GHOSTS = 3

# A field whose mean square is below this share of the largest counts as if it were of that size.
_NEGLIGIBLE = 1e-12
# Averages over cells below this size, squared, count as smooth.
_SMALL = 1e-40


def face_values(averages: Array) -> tuple[Array, Array]:
    """Return the values [f, ..., n + 1] on the left and the right of every face of n cells, of order 5 where smooth.

    `averages` [f, ..., n + 6] of f fields have three ghost cells at each end. WENO-Z: R. Borges, M. Carmona, B. Costa
    and W. S. Don, J. Comput. Phys. 227, 2008. All fields share their weights, which follow from the roughness of all of
    them, each in units of its own size: what is rough in one wave is so in every field that it moves (D. Levy,
    G. Puppo and G. Russo, SIAM J. Sci. Comput. 24, 2002).
    """
    count = averages.shape[-1] - 2 * GHOSTS + 1
    axes = tuple(range(1, averages.ndim))
    sizes = np.mean(averages**2, axis=axes, keepdims=True)
    units = 1 / np.maximum(sizes, _NEGLIGIBLE * np.max(sizes) + _SMALL)
    cells = [averages[..., shift : shift + count] for shift in range(2 * GHOSTS)]
    return _upwind(cells[:5], units), _upwind(cells[:0:-1], units)


def _upwind(cells: Sequence[Array], units: Array) -> Array:
    """Return the value at the face behind the third of five cells, seen from there."""
    a, b, c, d, e = cells
    rough = [
        np.sum(units * part, axis=0)
        for part in (
            13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
            13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
            13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
        )
    ]
    whole = (rough[0] - rough[2]) ** 2
    first, second, third = (
        share * (1 + whole / (_SMALL + part**2)) for share, part in zip((1, 6, 3), rough, strict=True)
    )
    total = 6 * (first + second + third)
    first, second, third = first / total, second / total, third / total
    return np.asarray(
        first * (2 * a - 7 * b + 11 * c) + second * (5 * c - b + 2 * d) + third * (2 * c + 5 * d - e)
    )


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
