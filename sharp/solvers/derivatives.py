"""First derivatives of a solution anywhere in the closed domain and the time interval, from its values alone.

Differences of order 7 and 8 are taken with steps of several sizes, and those count that change least from one step to
the next: truncation falls with the step, and what rounding and interpolation leave grows.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from sharp.problems import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fd_weights import central_stencil, least_change, one_sided_stencil
from sharp.solvers.grid import Array
from sharp.solvers.sample_points import evaluate, fits, lengths

# Steps as shares of the extent of the domain, or of the time interval; stencils reach four or seven steps away.
STEPS = (0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)


def first_derivative(
    problem: Problem, solution: DiscreteSolution, by: str, points: Array, times: Array
) -> Array:
    """Return the derivative along a coordinate of all fields [fields, k, m] at points [m, d] and times [k].

    Where no stencil fits, as in a corner that is sharper than all of them, it is not a number.
    """
    if by == problem.time_name:
        return _in_time(problem, solution, points, times)
    axis = problem.space.index(by)
    direction = np.zeros(len(problem.space))
    direction[axis] = 1.0
    found = _along(problem, solution, direction, points, times)
    missing = np.isnan(found).any(axis=(0, 1))
    if np.any(missing) and len(direction) > 1:
        found[:, :, missing] = _from_other_directions(problem, solution, axis, points[missing], times)
    return found


def _along(
    problem: Problem, solution: DiscreteSolution, direction: Array, points: Array, times: Array
) -> Array:
    """Return the derivative along a unit vector: central where that fits, else towards one side."""
    found = _steadiest(problem, solution, direction, points, times, central_stencil(1))
    for sign in (-1.0, 1.0):
        missing = np.isnan(found).any(axis=(0, 1))
        if np.any(missing):
            offsets, weights = one_sided_stencil(1)
            found[:, :, missing] = sign * _steadiest(
                problem, solution, sign * direction, points[missing], times, (offsets, weights)
            )
    return found


def _steadiest(
    problem: Problem,
    solution: DiscreteSolution,
    direction: Array,
    points: Array,
    times: Array,
    stencil: tuple[Array, Array],
) -> Array:
    offsets, weights = stencil
    steps = np.array(STEPS) * float(np.max(np.abs(direction) * lengths(problem)))
    reach = steps[:, None] * offsets
    tried = np.full((len(steps), len(points), len(problem.fields), len(times)), np.nan)
    places = points[:, None] + reach[:, None, :, None] * direction
    fitting = np.stack([fits(problem, own.swapaxes(0, 1)) for own in places])
    if np.any(fitting):
        # All steps at once: solutions are faster at many points than at few ones many times.
        values = evaluate(solution, places[fitting].reshape(-1, points.shape[1]), times)
        values = values.reshape(len(values), len(times), -1, len(offsets)) @ weights
        tried[fitting] = np.moveaxis(values, 2, 0) / steps[np.nonzero(fitting)[0], None, None]
    return np.moveaxis(least_change(tried), 0, -1)


def _from_other_directions(
    problem: Problem, solution: DiscreteSolution, axis: int, points: Array, times: Array
) -> Array:
    """Return the derivative along an axis at points from which stencils fit along slanted directions alone.

    The gradient is what fits the derivatives along all directions that lead inside, by least squares.
    """
    dimension = points.shape[1]
    corners = [np.array(corner, dtype=float) for corner in product((-2, -1, 0, 1, 2), repeat=dimension)]
    directions = np.unique(
        [np.round(corner / np.linalg.norm(corner), 12) for corner in corners if np.any(corner)], axis=0
    )
    offsets, weights = one_sided_stencil(1)
    slopes = np.stack(
        [
            -_steadiest(problem, solution, -direction, points, times, (offsets, weights))
            for direction in directions
        ]
    )
    found = np.full(slopes.shape[1:], np.nan)
    for place in range(len(points)):
        known = np.isfinite(slopes[..., place]).all(axis=(1, 2))
        if np.linalg.matrix_rank(directions[known], tol=0.3) == dimension:
            inverse = np.linalg.pinv(directions[known])
            found[..., place] = np.einsum("n,nfk->fk", inverse[axis], slopes[known][..., place])
    return found


def _in_time(problem: Problem, solution: DiscreteSolution, points: Array, times: Array) -> Array:
    assert problem.time is not None, "a steady problem has no time to differentiate by"
    start, end = problem.time
    central, sided = central_stencil(1), one_sided_stencil(1)
    tried = []
    for share in STEPS:
        step = share * (end - start)
        late, early = times + 4 * step > end, times - 4 * step < start
        found = np.full((len(problem.fields), len(times), len(points)), np.nan)
        for chosen, (offsets, weights), sign in (
            (~late & ~early, central, 1.0),
            (late, sided, 1.0),
            (early & ~late, sided, -1.0),
        ):
            if np.any(chosen):
                moments = times[chosen][:, None] + sign * step * offsets
                distinct, back = np.unique(np.clip(moments, start, end), return_inverse=True)
                values = evaluate(solution, points, distinct)[:, back.ravel()]
                values = values.reshape(len(values), *moments.shape, -1)
                found[:, chosen] = sign * np.einsum("fkqm,q->fkm", values, weights) / step
        tried.append(found)
    return least_change(np.stack(tried))
