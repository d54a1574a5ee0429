"""Derivatives of a function that can be evaluated anywhere, by finite differences of high order.

What a method says of its own derivatives is of no use in checking it; values of the solution are all that is used.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache
from itertools import product
from math import factorial

import numpy as np

from sharp.solvers.grid import Array

HALF = 4  # nodes on each side of a central stencil: order 8 for first and second derivatives


@cache
def fornberg_weights(offsets: tuple[int, ...], order: int) -> tuple[float, ...]:
    """Return the weights of values at integer offsets, of the derivative of some order at 0 for a step of 1.

    They are the derivatives at 0 of the Lagrange polynomials of the nodes (B. Fornberg, Generation of finite difference
    formulas on arbitrarily spaced grids, Math. Comp. 51, 1988), in exact arithmetic until the end.
    """
    found = []
    for node in offsets:
        coefficients = [Fraction(1)]
        for other in offsets:
            if other != node:
                shifted, kept = [Fraction(0), *coefficients], [*coefficients, Fraction(0)]
                coefficients = [(a - other * b) / (node - other) for a, b in zip(shifted, kept, strict=True)]
        found.append(float(factorial(order) * coefficients[order]))
    return tuple(found)


def central_stencil(order: int) -> tuple[Array, Array]:
    """Return offsets [s] and weights [s] of a central stencil; order 0 is the value itself."""
    return _stencil(range(-HALF, HALF + 1), order)


def one_sided_stencil(order: int) -> tuple[Array, Array]:
    """Return offsets [s] and weights [s] of a one-sided stencil of the nodes 0, -1, …, -7."""
    return _stencil(range(0, -2 * HALF, -1), order)


def _stencil(offsets: range, order: int) -> tuple[Array, Array]:
    nodes, weights = np.array(offsets, dtype=float), np.array(fornberg_weights(tuple(offsets), order))
    return nodes[weights != 0], weights[weights != 0]


def mixed(by: tuple[int, ...]) -> tuple[Array, Array]:
    """Return offsets [s, d] and weights [s] of a mixed derivative, `by[i]` times along axis i, for steps of 1."""
    offsets, weights = zip(*map(central_stencil, by), strict=True)
    return np.array(list(product(*offsets))), np.array(list(map(np.prod, product(*weights))))


def least_change(found: Array) -> Array:
    """Return of results by falling steps [steps, …] those that change least from one step to the next."""
    if len(found) == 1:
        return np.asarray(found[0])
    change = np.abs(np.diff(found, axis=0))
    best = np.argmin(np.where(np.isfinite(change), change, np.inf), axis=0)[None]
    return np.asarray(np.take_along_axis(found[1:], best, axis=0)[0])
