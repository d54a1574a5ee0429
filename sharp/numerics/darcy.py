"""Steady Darcy flow `-div(a grad u) = beta` on a square with u = 0 on its boundary: reference data.

The data hold a and u at the N x N nodes of a grid of spacing h, boundary included. What a is between the
nodes has to be settled before there is a solution to speak of: here it is constant on the dual cell of each
node, the square of side h around it (cut off at the boundary), which is what solvers assume that take a
node's value for its surroundings.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError, SpecificationError
from sharp.evaluation.datasets import Truth
from sharp.numerics.blocks import Progress, map_blocks
from sharp.numerics.fast_poisson import solve_dirichlet
from sharp.numerics.initial import Evaluate, InitialSet
from sharp.problems.problem import Problem

Array = NDArray[np.float64]

SCHEME = "cubic splines to the nodes, five-point differences with arithmetic means, cubic splines back"
TRUTH_SCHEME = "linear finite elements on grids 2, 4 and, where needed, 8 times finer, extrapolated"
PHASES = (3.0, 12.0)
_INVERSE_LENGTH = 3.0
_MOST_GRIDS = 3
_ORDER = 1.5
# Leaves u off by 1e-7 (L2), a hundredth of what the finest grid does.
_ALGEBRAIC = 1e-6


def sample_initial(problem: Problem, n: int, seed: int) -> InitialSet:
    """Draw n coefficients on the output grid: 12 where a Gaussian random field is positive, 3 elsewhere.

    The field has mean zero and the covariance (-Laplace + 9)^-2 with Neumann conditions, without the
    constant mode, on the unit square (Li et al., "Fourier neural operator for parametric partial
    differential equations", 2020). Each sample depends on the seed and its index alone.
    """
    from scipy.fft import dctn

    port, N = problem.interface.inputs[0].name, problem.grid.points[problem.space[0]]
    modes = np.arange(N) ** 2
    # The transform multiplies all modes but the first by 2; orthonormal ones differ by the root of 2.
    norm = np.where(modes == 0, 1.0, np.sqrt(0.5))
    deviation = np.outer(norm, norm) / (np.pi**2 * (modes[:, None] + modes) + _INVERSE_LENGTH**2)
    deviation[0, 0] = 0.0

    def coefficient(sample: int) -> NDArray[np.float32]:
        field = dctn(deviation * np.random.default_rng([seed, sample]).standard_normal((N, N)), type=1)
        return np.where(field > 0, PHASES[1], PHASES[0]).astype(np.float32)

    return InitialSet({port: np.stack([coefficient(sample) for sample in range(n)])})


def solve_truth(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any] | None = None,  # noqa: ARG001  steady
    *,
    tolerance: float = 1e-4,
    evaluate: Evaluate | None = None,  # noqa: ARG001  there is nothing between the nodes to evaluate
    progress: Progress | None = None,
) -> Truth:
    """Solve for u [n, N, N] with linear finite elements aligned to the dual cells, on finer and finer grids.

    At corners of the interface the gradient is unbounded: where two phases of ratio 4 meet as on a chess
    board, u behaves as r^0.59, and the error at best as h^1.2. The order measured on published coefficients
    is 1.4 to 1.6; 1.5 is assumed to extrapolate from two grids. The error is the distance of the finest
    solution from the extrapolated one, which is returned and some ten times closer; it may exceed
    `tolerance` on the last grid. Raises `DataError` where a is not positive or not square.
    """
    a = coefficients(problem, initial)
    load = problem.parameters["beta"] * side(problem) ** 2

    def work(rows: slice) -> tuple[Array, float]:
        return _extrapolated(a[rows.start], load, tolerance)

    solved = map_blocks(work, len(a), 1, f"truth of {problem.id}", progress)
    solutions, errors = zip(*solved, strict=True)
    return Truth({problem.interface.returns[0].name: np.stack(solutions)}, np.array(errors))


def solve_pdebench(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any] | None = None,  # noqa: ARG001  steady
    progress: Progress | None = None,
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published data were made: u [n, N, N], float32.

    The published procedure takes the values of a for those at the centres of N x N cells, interpolates them
    to N x N nodes, solves there by five-point differences, and interpolates u back to the cell centres. So
    u is not zero at the outermost points, and other solvers end up about 5e-3 away. Raises `DataError` as
    `solve_truth` does.
    """
    a = coefficients(problem, initial)
    load = problem.parameters["beta"] * side(problem) ** 2

    def work(rows: slice) -> NDArray[np.float32]:
        return published(a[rows.start], load).astype(np.float32)

    solved = map_blocks(work, len(a), 1, f"published scheme, {problem.id}", progress)
    return {problem.interface.returns[0].name: np.stack(solved)}


def coefficients(problem: Problem, initial: Mapping[str, NDArray[Any]]) -> Array:
    """Return the coefficient [n, N, N] in double precision; raises `DataError` unless square and positive."""
    port = problem.interface.inputs[0].name
    a = np.asarray(initial[port], np.float64)
    if a.ndim != 3 or a.shape[1] != a.shape[2]:
        raise DataError(f"{problem.id}: expected `{port}` to have the axes [n, N, N], found {list(a.shape)}")
    if not np.all(a > 0):
        raise DataError(
            f"{problem.id}: expected `{port}` to be positive everywhere, found the minimum {a.min():g}"
        )
    return a


def side(problem: Problem) -> float:
    """Return the length of the sides of the square; raises `SpecificationError` if it is none."""
    (left, right), (low, high) = (problem.bounds[axis] for axis in problem.space)
    if not np.isclose(right - left, high - low):
        raise SpecificationError(f"{problem.id}: expected a square domain, found {dict(problem.bounds)}")
    return right - left


def finite_elements(a: Array, load: float, refinement: int) -> Array:
    """Return u at the nodes of the data, solved with linear elements on a grid finer by an even factor.

    Every fine square lies in one dual cell. With triangles, halves of squares, stiffness couples horizontal
    and vertical neighbours only, by the mean coefficient of the two squares that share the edge.
    """
    n = (a.shape[0] - 1) * refinement
    node = np.rint((np.arange(n) + 0.5) / refinement).astype(int)
    squares = a[np.ix_(node, node)]
    along_x, along_y = 0.5 * (squares[:, :-1] + squares[:, 1:]), 0.5 * (squares[:-1] + squares[1:])
    u = solve_dirichlet(along_x, along_y, np.full((n - 1, n - 1), load / n**2), _ALGEBRAIC)
    return np.ascontiguousarray(u[::refinement, ::refinement])


def published(a: Array, load: float) -> Array:
    """Return u of the published procedure for one coefficient [N, N]; see `solve_pdebench`."""
    N = len(a)
    centres, nodes = (np.arange(N) + 0.5) / N, np.linspace(0, 1, N)
    a = _resampled(a, centres, nodes)
    along_x, along_y = 0.5 * (a[1:, 1:-1] + a[:-1, 1:-1]), 0.5 * (a[1:-1, 1:] + a[1:-1, :-1])
    u = solve_dirichlet(along_x, along_y, np.full((N - 2, N - 2), load / (N - 1) ** 2))
    return _resampled(u, nodes, centres)


def _extrapolated(a: Array, load: float, tolerance: float) -> tuple[Array, float]:
    """Refine by factors of 2; extrapolate with the usual order from two grids, with the one seen on three."""
    solutions = [finite_elements(a, load, 2)]
    ratio = 2**_ORDER
    while True:
        solutions.append(finite_elements(a, load, 2 ** (len(solutions) + 1)))
        changes = [float(np.linalg.norm(fine - coarse)) for coarse, fine in pairwise(solutions)]
        if len(changes) > 1:
            ratio = max(changes[-2] / changes[-1], 2.0)
        limit = solutions[-1] + (solutions[-1] - solutions[-2]) / (ratio - 1)
        error = float(np.linalg.norm(solutions[-1] - limit) / np.linalg.norm(limit))
        if error <= tolerance or len(solutions) == _MOST_GRIDS:
            return limit, error


def _resampled(values: Array, at: Array, to: Array) -> Array:
    """Interpolate values on a square grid by cubic splines along both axes, extrapolating at the ends."""
    from scipy.interpolate import make_interp_spline

    for _ in range(2):
        values = make_interp_spline(at, values)(to).T
    return values
