"""Problems with one field on a period: their grid, random initial conditions, and truth by Fourier series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems.problem import Problem
from sharp.reference.chunking import Progress, map_blocks
from sharp.reference.datasets import ReferenceSolution, uniform_points
from sharp.reference.initial import Evaluate, InitialSet, sine_sums
from sharp.reference.spectral import (
    QuadraticPde,
    Real,
    coefficients,
    relative_l2,
    solve,
    solve_self_converged,
)

FOURIER_SCHEME = "Fourier series (3/2 rule), ETDRK4, refined in space and time until self-converged"
# Samples that are solved together: their arrays stay in the cache.
BLOCK = 4
# Points a grid cell at which known initial functions are taken: they have steep windows.
OVERSAMPLING = 16


def period(problem: Problem) -> float:
    """Return the length of the interval."""
    low, high = problem.bounds[problem.space[0]]
    return high - low


def grid(problem: Problem, points: int) -> Real:
    """Return the points of the problem's grid [points]."""
    return uniform_points(problem, problem.space[0], points)


def given(problem: Problem, initial: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the initial condition [n, N] of the only input."""
    return initial[problem.interface.inputs[0].name]


def returned(problem: Problem, frames: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Name the solution [n, T, N] after the only return."""
    return {problem.interface.returns[0].name: frames}


def sample_sines(problem: Problem, n: int, seed: int, *, unit: bool = False) -> InitialSet:
    """Draw sums of sines on the problem's grid, with `unit` shifted and stretched to [0, 1]."""
    port, axis = problem.interface.inputs[0].name, problem.space[0]
    low, length = problem.bounds[axis][0], period(problem)
    x = grid(problem, problem.grid.points[axis])
    functions = sine_sums(n, seed)
    if unit:
        functions = functions.scaled_to_unit((x - low) / length)

    def evaluate(points: Real) -> dict[str, Real]:
        return {port: functions((points - low) / length)}

    return InitialSet({port: evaluate(x)[port].astype(np.float32)}, evaluate)


def fourier_truth(
    problem: Problem,
    equation: QuadraticPde,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    tolerance: float,
    evaluate: Evaluate | None,
    progress: Progress | None,
) -> ReferenceSolution:
    """Solve a quadratic equation until self-converged, from functions or else from interpolated values."""
    values = given(problem, initial).astype(np.float64)
    n, points = values.shape
    times = t.astype(np.float64)
    fine = values if evaluate is None else given(problem, evaluate(_fine_grid(problem, points)))
    spectrum = coefficients(fine, 2 * points)

    def work(rows: slice) -> tuple[Real, Real]:
        frames, error = solve_self_converged(equation, spectrum[rows], points, times, tolerance)
        if evaluate is None:
            error = np.maximum(error, interpolation_error(solve_from, values[rows], frames))
        frames[:, 0] = values[rows]
        return frames, error

    def solve_from(coarse: Real) -> Real:
        return solve(equation, coefficients(coarse, points // 2), points, times, 4 * tolerance)

    return solve_blocks(problem, work, n, progress)


def solve_blocks(
    problem: Problem, work: Callable[[slice], tuple[Real, Real]], n: int, progress: Progress | None
) -> ReferenceSolution:
    """Gather the solutions and errors of all samples from `work(rows) -> [n, T, N], [n]`."""
    results = map_blocks(work, n, BLOCK, f"truth of {problem.id}", progress)
    frames, errors = (np.concatenate(parts) for parts in zip(*results, strict=True))
    return ReferenceSolution(returned(problem, frames), errors)


def solve_published(
    problem: Problem,
    solve: Callable[[NDArray[Any], NDArray[Any]], NDArray[np.float32]],
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    progress: Progress | None,
) -> dict[str, NDArray[np.float32]]:
    """Run a published scheme `solve(initial [n, N], t)` on all samples."""
    values = given(problem, initial)
    blocks = map_blocks(
        lambda rows: solve(values[rows], t), len(values), BLOCK, f"data of {problem.id}", progress
    )
    return returned(problem, np.concatenate(blocks))


def interpolation_error(solve_from: Callable[[Real], Real], values: Real, frames: Real) -> Real:
    """Estimate how far the solutions from values [n, N] may be off because nothing is known between them.

    The same solution from every second value shows the effect at twice the spacing; that of a kink (the least
    smooth initial condition of the family) is proportional to the spacing to the power 3/2.
    """
    error = relative_l2(solve_from(values[:, ::2])[:, 1:], frames[:, 1:])
    return np.asarray(error / 2**1.5)


def _fine_grid(problem: Problem, points: int) -> Real:
    """Return points that refine the grid and contain it, beginning with its first."""
    start, spacing = grid(problem, points)[0], period(problem) / points
    return np.asarray(start + spacing / OVERSAMPLING * np.arange(OVERSAMPLING * points))
