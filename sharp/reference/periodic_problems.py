"""Problems with one field on a period: their grid, random initial conditions, and solutions by Fourier series."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem
from sharp.reference.datasets import uniform_points
from sharp.reference.family import ReferenceScheme
from sharp.reference.initial import Evaluate, InitialSet, sine_sums
from sharp.reference.spectral import (
    QuadraticPde,
    Real,
    coefficients,
    relative_l2,
    solve,
    solve_self_converged,
)

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


def only_value(arrays: Mapping[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the array of a problem with one input."""
    (values,) = arrays.values()
    return values


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


def fourier_scheme(equation: Callable[[Problem], QuadraticPde]) -> ReferenceScheme:
    """Return the scheme for a quadratic equation: from functions, else from trigonometric interpolants of values."""
    name = "Fourier series (3/2 rule), ETDRK4, refined in space and time until self-converged"
    return ReferenceScheme(name, partial(_prepare_fourier, equation), tolerance=1e-8, together=BLOCK)


def _prepare_fourier(
    equation_of: Callable[[Problem], QuadraticPde],
    problem: Problem,
    values: Real,
    t: NDArray[Any],
    tolerance: float,
    evaluate: Evaluate | None,
) -> Callable[[slice], tuple[Real, Real]]:
    equation, points, times = equation_of(problem), values.shape[-1], t.astype(np.float64)
    fine = values if evaluate is None else only_value(evaluate(_fine_grid(problem, points)))
    spectrum = coefficients(fine, 2 * points)

    def solve_from(coarse: Real) -> Real:
        return solve(equation, coefficients(coarse, points // 2), points, times, 4 * tolerance)

    def work(rows: slice) -> tuple[Real, Real]:
        frames, error = solve_self_converged(equation, spectrum[rows], points, times, tolerance)
        if evaluate is None:
            error = np.maximum(error, interpolation_error(solve_from, values[rows], frames))
        frames[:, 0] = values[rows]
        return frames, error

    return work


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
