"""Steady Darcy flow `-div(a grad u) = beta` on a square with u = 0 on its boundary: data, residual, metrics.

The data hold a and u at the N x N nodes of a grid of spacing h, boundary included. What a is between the
nodes has to be settled before there is a solution to speak of: here it is constant on the dual cell of each
node, the square of side h around it (cut off at the boundary), which is what solvers assume that take a
node's value for its surroundings. The metrics assume the same. On coefficients whose phases meet in steps of one
cell, the exact solution has a corner at every step that no difference resolves: what it leaves is told below for
random coefficients on 121 x 121 nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError, SpecificationError
from sharp.problems import Problem
from sharp.reference.datasets import Inputs, ReferenceSolution
from sharp.reference.family import BenchmarkFamily, PublishedScheme, ReferenceScheme, SmoothTestProblem
from sharp.reference.fast_poisson import dual_norm, solve_dirichlet
from sharp.reference.initial import Evaluate, InitialSet
from sharp.reference.metrics import FieldSample, MetricInput, MetricValue, ratio, run_metric, sample_metric
from sharp.reference.residual import GridResidual, checked_prediction, combined, mean_or_one, norm
from sharp.reference.spectral import relative_l2

Array = NDArray[np.float64]
Norm = Callable[[Array], float]
Mask = NDArray[np.bool_]

PHASES = (3.0, 12.0)
# The covariance of the random field is (-Laplace + this squared)^-2.
_INVERSE_LENGTH = 3.0
# Grids that the reference solution is computed on at most, and the order by which two of them are extrapolated.
_MOST_GRIDS = 3
_ORDER = 1.5
# Leaves u off by 1e-7 (L2), a hundredth of what the finest grid does.
_ALGEBRAIC = 1e-6
_NOWHERE_CONSTANT = "the coefficient is nowhere constant over 5 x 5 nodes"


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


def _elements(
    problem: Problem,
    values: Array,
    _t: None,
    tolerance: float,
    _evaluate: Evaluate | None,  # there is nothing between the nodes to evaluate
) -> Callable[[slice], tuple[Array, Array]]:
    """Prepare solving one sample with linear finite elements aligned to the dual cells, on finer and finer grids.

    At corners of the interface the gradient is unbounded: where two phases of ratio 4 meet as on a chess
    board, u behaves as r^0.59, and the error at best as h^1.2. The order measured on published coefficients
    is 1.4 to 1.6; 1.5 is assumed to extrapolate from two grids. The error is the distance of the finest
    solution from the extrapolated one, which is returned and some ten times closer; it may exceed
    `tolerance` on the last grid.
    """
    load = problem.parameters["beta"] * side(problem) ** 2

    def work(rows: slice) -> tuple[Array, Array]:
        limit, error = _extrapolated(values[rows.start], load, tolerance)
        return limit[None], np.array([error])

    return work


def _five_point_published(
    problem: Problem, values: Array, _t: None
) -> Callable[[slice], NDArray[np.float32]]:
    """Prepare solving one sample as the published data were made.

    The published procedure takes the values of a for those at the centres of N x N cells, interpolates them
    to N x N nodes, solves there by five-point differences, and interpolates u back to the cell centres. So
    u is not zero at the outermost points, and other solvers end up about 5e-3 away.
    """
    N, load = values.shape[-1], problem.parameters["beta"] * side(problem) ** 2
    centres, nodes = (np.arange(N) + 0.5) / N, np.linspace(0, 1, N)
    right = np.full((N - 2, N - 2), load / (N - 1) ** 2)

    def solve(rows: slice) -> NDArray[np.float32]:
        a = _resampled(values[rows.start], centres, nodes)
        along_x, along_y = arithmetic(a[1:, 1:-1], a[:-1, 1:-1]), arithmetic(a[1:-1, 1:], a[1:-1, :-1])
        u = solve_dirichlet(along_x, along_y, right)
        return _resampled(u, nodes, centres).astype(np.float32)[None]

    return solve


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


def residual(problem: Problem, inputs: Inputs, prediction: Mapping[str, NDArray[Any]]) -> GridResidual:
    """Measure the flux balance of the dual cells of the nodes for u [n, N, N].

    The coefficient at their faces is the harmonic mean of two nodes, the norm is dual to ||grad u||: up to the contrast
    of the coefficient, the residual is the relative error of grad u. Raises `DataError` where an array is missing, not
    finite or of another shape.
    """
    a = np.asarray(inputs.arrays[problem.interface.inputs[0].name], np.float64)
    (u,) = checked_prediction(problem, prediction, a.shape).values()
    load = problem.parameters["beta"] * (side(problem) / (a.shape[1] - 1)) ** 2
    pairs = list(zip(a, u.astype(np.float64), strict=True))
    with_harmonic, with_arithmetic = (
        {"flux balance": mean_or_one([_imbalance(*pair, load, mean) for pair in pairs])}
        for mean in (harmonic, arithmetic)
    )
    edge = np.ones(a.shape[1:])
    edge[1:-1, 1:-1] = 0.0
    boundary = {"boundary condition": mean_or_one([norm(edge * v) / (norm(v) or 1.0) for _, v in pairs])}
    how = f"harmonic means at faces; dual norm, {a.shape[1]} nodes along a side"
    return combined(with_harmonic, boundary, how, {"arithmetic means at faces": with_arithmetic})


def harmonic(one: Array, other: Array) -> Array:
    """Return the coefficient between two nodes in whose dual cells it has the two values."""
    return 2 * one * other / (one + other)


def arithmetic(one: Array, other: Array) -> Array:
    """Return the mean of two values."""
    return 0.5 * (one + other)


def _imbalance(a: Array, u: Array, load: float, mean: Any) -> float:
    """Return the net flux out of the dual cells less the source in them, relative to both."""
    along_x = mean(a[1:, 1:-1], a[:-1, 1:-1]) * np.diff(u[:, 1:-1], axis=0)
    along_y = mean(a[1:-1, 1:], a[1:-1, :-1]) * np.diff(u[1:-1], axis=1)
    outflow = -np.diff(along_x, axis=0) - np.diff(along_y, axis=1)
    source = np.full_like(outflow, load)
    scale = dual_norm(outflow) + dual_norm(source)
    return dual_norm(outflow - source) / scale if scale else 0.0


def smooth_coefficients(s: Array) -> Array:
    """Return two coefficients [2, m, m] between 3 and 12, as those of the data, at the points (s_i, s_j)."""
    x, y = s[:, None], s[None, :]
    return np.stack(
        [6 + 2 * np.cos(np.pi * x) * np.cos(2 * np.pi * y), 6 * np.exp(0.6 * np.sin(3 * x - 2 * y))]
    )


def solve_smooth(problem: Problem, points: int) -> ReferenceSolution:
    """Solve for the smooth coefficients by five-point differences on two finer grids; extrapolate (second order).

    `solve_reference` takes the coefficient for constant around each node; this one is not.
    """
    load = problem.parameters["beta"] * side(problem) ** 2
    coarse, fine = (_five_point(points - 1, refinement, load) for refinement in (8, 16))
    limit = fine + (fine - coarse) / 3
    return ReferenceSolution({problem.interface.returns[0].name: limit}, relative_l2(fine, limit))


def _five_point(intervals: int, refinement: int, load: float) -> Array:
    """Return u at the nodes of a grid [n, m, m], solved on a finer one."""
    n = intervals * refinement
    right = np.full((n - 1, n - 1), load / n**2)
    # Every second of these points is a node, those between are where the coefficients of edges are taken.
    a = smooth_coefficients(np.linspace(0, 1, 2 * n + 1))
    solved = [solve_dirichlet(one[1::2, 2:-1:2], one[2:-1:2, 1::2], right) for one in a]
    return np.stack(solved)[:, ::refinement, ::refinement]


@sample_metric(_NOWHERE_CONSTANT)
def residual_l2(sample: FieldSample) -> float | None:
    """Return the root mean square of -a (u_xx + u_yy) - beta over those of the three terms (u [N, N]).

    Central differences, at nodes in the middle of 5 x 5 of the same coefficient. Of order h^2 where u is smooth; the
    exact solution leaves 5e-3.
    """
    return _strong_residual(sample, _rms)


@sample_metric(_NOWHERE_CONSTANT)
def residual_max(sample: FieldSample) -> float | None:
    """Return the same as `residual_l2` with largest values; the exact solution leaves 3e-2, next to corners."""
    return _strong_residual(sample, _largest)


@sample_metric()
def cell_balance(sample: FieldSample) -> float:
    """Return the mean over dual cells of what flows in, out and arises, over the sum of their sizes (u [N, N]).

    Fluxes between cells have the harmonic mean of their coefficients. 0 for the five-point scheme with that mean,
    of order h^2 for smooth solutions; the exact solution leaves 2e-3, from the cells at the edge of a phase.
    """
    a, u, source = *_arrays(sample), sample.problem.parameters["beta"] * sample.dx**2
    x, y = _fluxes(a, u)[:, 1:-1], _fluxes(a.T, u.T)[:, 1:-1].T
    surplus = np.abs(np.diff(x, axis=0) + np.diff(y, axis=1) - source)
    passing = np.abs(x[1:]) + np.abs(x[:-1]) + np.abs(y[:, 1:]) + np.abs(y[:, :-1]) + abs(source)
    return float(np.mean(surplus / passing))


@sample_metric()
def compatibility(sample: FieldSample) -> float:
    """Return how far the flux out through the walls is from the integral of beta, relative to that (u [N, N]).

    The flux is that between the nodes on the walls and their neighbours, out of the square that ends half a cell before
    the walls. 0 for schemes that conserve; else of order h^2, and the exact solution leaves 4e-4, from phases that end
    at a wall. A solution that is 10 % too large gives 0.1.
    """
    a, u = _arrays(sample)
    fluxes = [flux[:, 1:-1] for flux in (_fluxes(a, u), _fluxes(a.T, u.T))]
    outflow = sum(float(flux[-1].sum() - flux[0].sum()) for flux in fluxes)
    source = sample.problem.parameters["beta"] * ((len(u) - 2) * sample.dx) ** 2
    return ratio(abs(outflow - source), abs(source))


@sample_metric(_NOWHERE_CONSTANT)
def jump_estimator(sample: FieldSample) -> float | None:
    """Return the residual-jump estimate of the error in the energy norm, over the energy norm of u [N, N].

    The squares of h (beta + a (u_xx + u_yy)) / sqrt(a) in the cells, and of jumps of the normal flux over
    sqrt(a + a') at their faces, are added up. Fluxes on the two sides of a face are extrapolated from three nodes of
    one coefficient each, so that jumps of the coefficient cause none; faces without are left out. Of order h^2 for
    smooth solutions; the exact solution leaves 5e-2, falling with the root of h.
    """
    a, u = _arrays(sample)
    inside = _constant(a)
    if not inside.any():
        return None
    x, y = _second_differences(a, u)
    surplus = x + y + sample.problem.parameters["beta"] * sample.dx**2
    cells = np.square(surplus)[inside] / a[2:-2, 2:-2][inside]
    estimate = cells.sum() + _squared_jumps(a, u) + _squared_jumps(a.T, u.T)
    return float(np.sqrt(ratio(estimate, _energy(a, u) + _energy(a.T, u.T))))


@run_metric(needs_coarse_run=True)
def energy_change(case: MetricInput) -> MetricValue:
    """Return by how much the integral of u [n, N, N] changes from the coarse grid to the fine one, relative to that.

    Times beta, the integral is the energy, which converges twice as fast as the solution in the energy norm. A coarse
    grid knows every second value of the coefficient only: with random ones the exact solution changes by 1e-3.
    """
    assert case.coarse is not None
    (fine,), (coarse,) = case.prediction.values(), case.coarse[1].values()
    means = [_trapezoidal_mean(u) for u in (coarse, fine)]
    return MetricValue(float(np.mean(np.abs(means[0] - means[1]) / np.abs(means[1]))))


def _strong_residual(sample: FieldSample, norm: Norm) -> float | None:
    a, u = _arrays(sample)
    beta, inside = sample.problem.parameters["beta"], _constant(a)
    if not inside.any():
        return None
    x, y = (-term[inside] / sample.dx**2 for term in _second_differences(a, u))
    return ratio(norm(x + y - beta), norm(x) + norm(y) + abs(beta))


def _arrays(sample: FieldSample) -> tuple[Array, Array]:
    """Return coefficient and solution [N, N]."""
    (a,), (u,) = sample.given.values(), sample.fields.values()
    return a, u


def _constant(a: Array) -> Mask:
    """Return at which nodes [N-4, N-4] the coefficient is the same at all of the 5 x 5 nodes around."""
    along_x, along_y = _runs(a[1:] == a[:-1], 4), _runs((a[:, 1:] == a[:, :-1]).T, 4).T
    return along_x[:, 2:-2] & _runs(along_y, 5)


def _runs(flags: NDArray[np.bool_], length: int) -> NDArray[np.bool_]:
    """Return where so many flags in a row are set, along the first axis."""
    last = len(flags) - length + 1
    return np.asarray(np.logical_and.reduce([flags[start : start + last] for start in range(length)]))


def _second_differences(a: Array, u: Array) -> tuple[Array, Array]:
    """Return a h^2 u_xx and a h^2 u_yy [N-4, N-4]."""
    a, u = a[2:-2, 2:-2], u[1:-1, 1:-1]
    return a * np.diff(u, 2, axis=0)[:, 1:-1], a * np.diff(u, 2, axis=1)[1:-1]


def _fluxes(a: Array, u: Array) -> Array:
    """Return the fluxes between neighbours along the first axis, through faces of length h [N-1, N]."""
    return harmonic(a[1:], a[:-1]) * -np.diff(u, axis=0)


def _energy(a: Array, u: Array) -> float:
    return float((harmonic(a[1:], a[:-1]) * np.diff(u, axis=0) ** 2).sum())


def _squared_jumps(a: Array, u: Array) -> float:
    """Return the sum of squared jumps of the flux over a + a' at the faces between neighbours along the first axis.

    Slopes at the face from its two sides are extrapolated linearly from those between the three nodes there.
    """
    steps, left, right = np.diff(u, axis=0), a[2:-3], a[3:-2]
    constant = (a[:-5] == left) & (a[1:-4] == left) & (a[4:-1] == right) & (a[5:] == right)
    jump = right * (2 * steps[3:-1] - steps[4:]) - left * (2 * steps[1:-3] - steps[:-4])
    return float((constant * jump**2 / (left + right)).sum())


def _trapezoidal_mean(u: NDArray[np.floating]) -> Array:
    """Return the means [n] of u [n, N, N] over the square."""
    weights = np.ones(u.shape[-1])
    weights[[0, -1]] = 0.5
    return np.asarray(np.einsum("nij,i,j->n", u, weights, weights) / weights.sum() ** 2)


def _rms(values: Array) -> float:
    return float(np.sqrt(np.mean(values**2)))


def _largest(values: Array) -> float:
    return float(np.abs(values).max())


FAMILY = BenchmarkFamily(
    name="darcy-2d",
    sample_initial=sample_initial,
    reference=ReferenceScheme(
        "linear finite elements on grids 2, 4 and, where needed, 8 times finer, extrapolated",
        _elements,
        tolerance=1e-4,
    ),
    published=PublishedScheme(
        "cubic splines to the nodes, five-point differences with arithmetic means, cubic splines back",
        _five_point_published,
    ),
    values=coefficients,
    residual=residual,
    smooth=SmoothTestProblem({"a": smooth_coefficients}, solve=solve_smooth),
    metrics=(residual_l2, residual_max, cell_balance, compatibility, jump_estimator, energy_change),
)
