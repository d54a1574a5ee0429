"""Linear advection u_t + beta u_x = 0 on a period: truth by exact shift, published scheme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.datasets import Truth
from sharp.numerics import periodic, published, spectral
from sharp.numerics.blocks import Progress
from sharp.numerics.initial import Evaluate, InitialSet
from sharp.numerics.spectral import Real, coefficients, relative_l2, wave_numbers
from sharp.problems.problem import Problem

SCHEME = "finite volumes, limited slopes (MC), upwind flux, midpoint rule, CFL 0.4"
TRUTH_SCHEME = "exact shift"
CFL = 0.4


def sample_initial(problem: Problem, n: int, seed: int) -> InitialSet:
    """Draw n sums of sines."""
    return periodic.sample_sines(problem, n, seed)


def solve_truth(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    *,
    tolerance: float = 1e-8,  # noqa: ARG001  nothing is refined: the shift is exact
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
) -> Truth:
    """Shift the given functions, or the trigonometric interpolants of their values, by beta t.

    The error is that of interpolation, or of rounding where the functions are known.
    """
    if evaluate is not None:
        return _shift_functions(problem, initial, t, evaluate)
    values = periodic.given(problem, initial).astype(np.float64)
    points = values.shape[-1]
    waves = wave_numbers(points // 2 + 1, periodic.period(problem))
    distance = _speed(problem) * (t.astype(np.float64) - t[0])

    def shift_from(coarse: Real) -> Real:
        spectrum = coefficients(coarse, len(waves))[:, None]
        return spectral.evaluate(spectrum * np.exp(-1j * waves * distance[:, None]), points)

    def work(rows: slice) -> tuple[Real, Real]:
        frames = shift_from(values[rows])
        frames[:, 0] = values[rows]
        return frames, periodic.interpolation_error(shift_from, values[rows], frames)

    return periodic.solve_blocks(problem, work, len(values), progress)


def _shift_functions(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], evaluate: Evaluate
) -> Truth:
    values = periodic.given(problem, initial).astype(np.float64)
    x = periodic.grid(problem, values.shape[-1])
    distances = _speed(problem) * (t.astype(np.float64) - t[0])
    frames = np.stack([periodic.given(problem, evaluate(x - distance)) for distance in distances], axis=1)
    rounding = relative_l2(values, frames[:, 0])
    return Truth(periodic.returned(problem, frames), rounding)


def solve_pdebench(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published generator does, in float32."""
    beta, dx = _speed(problem), periodic.period(problem) / periodic.given(problem, initial).shape[-1]

    def flux(cells: Any) -> Any:
        left, right = published.face_states(cells)
        return beta * (left if beta >= 0 else right)

    solve = published.finite_volumes(flux, lambda _: CFL * dx / abs(beta), dx)
    return periodic.solve_published(problem, solve, initial, t, progress)


def _speed(problem: Problem) -> float:
    return problem.parameters["beta"]
