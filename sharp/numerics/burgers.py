"""Burgers' equation u_t + (u^2/2)_x = (nu/pi) u_xx on a period: truth by Fourier series, published scheme."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.datasets import Truth
from sharp.numerics import periodic, published
from sharp.numerics.blocks import Progress
from sharp.numerics.initial import Evaluate, InitialSet
from sharp.numerics.spectral import Quadratic
from sharp.problems.problem import Problem

SCHEME = "finite volumes, limited slopes (MC), upwind flux, central diffusion, midpoint rule, CFL 0.25"
TRUTH_SCHEME = "Fourier series (3/2 rule), ETDRK4, refined in space and time until self-converged"
CFL = 0.25


def viscosity(problem: Problem) -> float:
    """Return nu/pi, the constant of diffusion."""
    return problem.parameters["nu"] / np.pi


def sample_initial(problem: Problem, n: int, seed: int) -> InitialSet:
    """Draw n sums of sines."""
    return periodic.sample_sines(problem, n, seed)


def solve_truth(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    *,
    tolerance: float = 1e-8,
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
) -> Truth:
    """Solve until self-converged, from `evaluate` if given, else from the interpolated values."""
    nu = viscosity(problem)
    equation = Quadratic(lambda k: -nu * k**2, lambda k: -0.5j * k, periodic.period(problem))
    return periodic.fourier_truth(problem, equation, initial, t, tolerance, evaluate, progress)


def solve_pdebench(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published generator does, in float32."""
    import jax.numpy as jnp

    u = periodic.given(problem, initial)
    nu, dx = viscosity(problem), periodic.period(problem) / u.shape[-1]

    def flux(cells: Any) -> Any:
        left, right = published.face_states(cells)
        upwind = 0.5 * jnp.maximum(jnp.maximum(left, 0) ** 2, jnp.minimum(right, 0) ** 2)
        return upwind - nu / dx * (cells[..., 2:-1] - cells[..., 1:-2])

    def time_step(cells: Any) -> Any:
        speed = jnp.abs(cells).max(axis=-1, keepdims=True)
        return jnp.minimum(CFL * dx / speed, CFL * 0.5 * dx**2 / nu)

    solve = published.finite_volumes(flux, time_step, dx)
    return periodic.solve_published(problem, solve, initial, t, progress)
