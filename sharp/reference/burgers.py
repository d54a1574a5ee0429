"""Burgers' equation u_t + (u^2/2)_x = nu u_xx on a period: Fourier series, published scheme, metrics of entropy.

Entropy and total variation must not grow, and the mean must not change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem
from sharp.reference import periodic_problems
from sharp.reference.datasets import Inputs, spacing
from sharp.reference.family import BenchmarkFamily, PublishedScheme, SmoothTestProblem, StepLimit, about
from sharp.reference.metrics import (
    Array,
    FieldSample,
    MetricInput,
    MetricValue,
    accumulated,
    drift,
    jumps,
    largest_rise,
    ratio,
    run_metric,
    sample_metric,
    step_excess,
)
from sharp.reference.residual import BalanceLaw, BalanceLaws, Fields, FluxTerm, evolution_residual
from sharp.reference.spectral import QuadraticPde

CFL = 0.25
# Test functions on a period, each as wide as a quarter of it: cos^(2 * power).
_BUMPS = 16
_POWER = 4


def viscosity(problem: Problem) -> float:
    """Return nu, the constant of diffusion."""
    return problem.parameters["nu"]


def _equation(problem: Problem) -> QuadraticPde:
    nu = viscosity(problem)
    return QuadraticPde(lambda k: -nu * k**2, lambda k: -0.5j * k, periodic_problems.period(problem))


def _upwind(problem: Problem, values: Array, t: NDArray[Any]) -> Callable[[slice], NDArray[np.float32]]:
    import jax.numpy as jnp

    from sharp.reference import pdebench_schemes

    nu, dx = viscosity(problem), periodic_problems.period(problem) / values.shape[-1]

    def flux(cells: Any) -> Any:
        left, right = pdebench_schemes.face_states(cells)
        upwind = 0.5 * jnp.maximum(jnp.maximum(left, 0) ** 2, jnp.minimum(right, 0) ** 2)
        return upwind - nu / dx * (cells[..., 2:-1] - cells[..., 1:-2])

    def time_step(cells: Any) -> Any:
        speed = jnp.abs(cells).max(axis=-1, keepdims=True)
        return jnp.minimum(CFL * dx / speed, CFL * 0.5 * dx**2 / nu)

    return pdebench_schemes.finite_volumes(flux, time_step, dx, values, t)


def balance_laws(problem: Problem) -> BalanceLaws:
    """u_t + (u^2/2)_x - (nu u)_xx = 0."""
    nu = viscosity(problem)

    def equations(fields: Fields, _: object) -> dict[str, BalanceLaw]:
        u = fields["u"]
        return {"u": BalanceLaw(u, (FluxTerm(1, 0.5 * u**2), FluxTerm(2, -nu * u)), nu)}

    return BalanceLaws(equations, lambda fields: float(np.abs(fields["u"]).max()))


def step_limits(problem: Problem, inputs: Inputs) -> tuple[StepLimit, ...]:
    """Return the bounds of transport over a cell and of forward Euler with central diffusion."""
    fastest = float(np.abs(next(iter(inputs.arrays.values()))).max())
    dx = spacing(problem, inputs)
    return (
        StepLimit("transport", "dx/max|u|", fastest / dx),
        StepLimit("diffusion", "dx^2/(2 nu)", 2 * viscosity(problem) / dx**2),
    )


@sample_metric()
def entropy_violation(sample: FieldSample) -> float:
    """Return how much entropy u^2/2 is produced, in excess of viscosity's loss, over that of the start.

    The entropy inequality (u^2/2)_t + (u^3/3)_x <= kappa ((u^2/2)_xx - u_x^2), kappa = nu, is integrated against 16
    smooth bumps that add up to 1, each as wide as a quarter of the period; that keeps rates smooth in time even where a
    shock crosses many cells between output times. What counts for each bump is how far the accumulated production ever
    rises above its smallest earlier value. 0 for an entropy solution: differences of neighbours never overestimate the
    integral of u_x^2, so that a viscous shock between two points counts as loss, never as production. Left are
    integrals over time, of order 4 in the output step.
    """
    start = sample.given["u"]
    produced = _bumps(start.size, start.size * sample.dx).production(sample, viscosity(sample.problem))
    return ratio(largest_rise(produced).sum(), 0.5 * float(np.square(start).mean()))


@sample_metric()
def tv_growth(sample: FieldSample) -> float:
    """Return how far the total variation ever rises above its smallest earlier value, over the first.

    The exact total variation never rises. Sampled, that of a moving extremum jitters by (dx/L)^2.
    """
    variation = np.append(_variation(sample.given["u"][None]), _variation(sample.fields["u"]))
    return ratio(float(largest_rise(variation)), variation[0])


@sample_metric()
def mean_drift(sample: FieldSample) -> float:
    """Return the drift of the mean: exact where the grid resolves u, off by about (dx/L)^2 at kinks."""
    return drift(sample.fields["u"], sample.given["u"], np.abs(sample.given["u"]))


@run_metric()
def characteristic_cfl(case: MetricInput) -> MetricValue:
    """Return the excess for the printed step and the largest |u| [n, T, N] at any time."""
    fastest = max(max(float(u.max()), -float(u.min())) for u in case.prediction.values())
    return step_excess(case, fastest / spacing(case.problem, case.inputs), "Courant number max |u| dt/dx")


def _variation(u: Array) -> Array:
    """Return the total variation [T] of u [T, N]."""
    steps = jumps(u)
    return np.asarray(np.abs(steps, out=steps).sum(axis=1))


@dataclass(frozen=True)
class _Bumps:
    """Test functions on a period [N, J], at points and (`between`) halfway to the next, and their derivatives."""

    at: Array
    between: Array
    first: Array
    second: Array

    def production(self, sample: FieldSample, kappa: float) -> Array:
        """Return the mean entropy produced under each bump up to each time [T, J]."""
        u = sample.fields["u"]
        entropy, inflow = self._carried(u, kappa)
        inflow -= self._lost(u, kappa / sample.dx**2)
        return np.asarray((entropy - accumulated(sample.t, inflow)) / u.shape[1])

    # Below, one temporary array at a time: fetching memory costs more than the arithmetic.

    def _carried(self, u: Array, kappa: float) -> tuple[Array, Array]:
        """Return u^2/2 under each bump, and what flux and viscosity carry there [T, J]."""
        powers = np.square(u)
        entropy, spread = powers @ (0.5 * self.at), powers @ (0.5 * kappa * self.second)
        powers *= u
        return entropy, powers @ (self.first / 3) + spread

    def _lost(self, u: Array, factor: float) -> Array:
        """Return `factor` times the squared steps from point to point under each bump [T, J]."""
        steps = jumps(u)
        steps *= steps
        return np.asarray(steps @ (factor * self.between))


@lru_cache(maxsize=4)
def _bumps(points: int, length: float) -> _Bumps:
    """Return cos^8(pi (x - x_j)/L), scaled so that all 16 add up to 1."""
    waves = 2j * np.pi / length * np.arange(points // 2 + 1)[:, None]
    angle = np.pi * (np.arange(points)[:, None] / points - np.arange(_BUMPS) / _BUMPS)
    at = np.cos(angle) ** (2 * _POWER)
    spectrum = np.fft.rfft(at / at[0].sum(), axis=0)

    def back(factor: NDArray[np.complexfloating]) -> Array:
        return np.fft.irfft(factor * spectrum, points, axis=0)

    halfway = np.exp(0.5 * waves * length / points)
    return _Bumps(back(waves**0), back(halfway), back(waves), back(waves**2))


FAMILY = BenchmarkFamily(
    name="burgers",
    sample_initial=periodic_problems.sample_sines,
    reference=periodic_problems.fourier_scheme(_equation),
    published=PublishedScheme(
        "finite volumes, limited slopes (MC), upwind flux, central diffusion, midpoint rule, CFL 0.25",
        _upwind,
        periodic_problems.BLOCK,
    ),
    residual=partial(evolution_residual, balance_laws),
    # u > 0 has no sonic points, where first-order fluxes have kinks; a shock forms at 0.64 L or later.
    smooth=SmoothTestProblem(
        {"u": about(0.5, 0.25)}, lambda problem: 0.25 * periodic_problems.period(problem)
    ),
    metrics=(entropy_violation, tv_growth, mean_drift, characteristic_cfl),
    step_limits=step_limits,
)
