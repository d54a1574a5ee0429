"""The grid with twice the spacing that a solver is called on again, and what a solution is there."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem, periodic_axes
from sharp.reference.datasets import Inputs

Array = NDArray[Any]


def coarsened(problem: Problem, inputs: Inputs) -> Inputs | None:
    """Return the same samples with twice the spacing, at the same times, in the same precision.

    None where that does not go: for a solver that is given no arrays, with an odd number of cells or an even one of
    nodes along any axis, and for cells along an axis that is not periodic.
    """
    nodes = problem.grid.kind == "nodes"
    counts = next((values.shape[1:] for values in inputs.arrays.values()), None)
    if (
        counts is None
        or any(count % 2 != nodes for count in counts)
        or not (nodes or periodic_axes(problem) == set(problem.space))
    ):
        return None
    arrays = {name: restricted(problem, values) for name, values in inputs.arrays.items()}
    x = inputs.x[::2] if nodes else 0.5 * (inputs.x[::2] + inputs.x[1::2])
    return Inputs(arrays, inputs.t, x)


def restricted(problem: Problem, values: Array) -> Array:
    """Return values [..., points along each axis] on the coarse grid: at every second node, or at the new cell centres.

    The centres of a periodic grid lie between those of the fine one; there cubic interpolation conserves sums
    and is of order 4. Means of pairs of cells would add u_xx dx^2/8, which is more than good solvers err.
    """
    for axis in range(-len(problem.space), 0):
        along = np.moveaxis(values, axis, 0)
        coarse = along[::2] if problem.grid.kind == "nodes" else _between(along)
        values = np.moveaxis(coarse, 0, axis)
    return values


def _between(u: Array) -> Array:
    """Return the values midway between u[0] and u[1], u[2] and u[3], and so on, of a periodic array."""
    left, right = u[::2], u[1::2]
    nine, sixteenth = u.dtype.type(9), u.dtype.type(1 / 16)
    outside = np.roll(right, 1, axis=0) + np.roll(left, -1, axis=0)
    return np.asarray(sixteenth * (nine * (left + right) - outside))
