"""Measures for diffusion with logistic growth: bounds, the reaction between output times, safe steps."""

from __future__ import annotations

import numpy as np

from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.samples import Array, Sample, mean_over_samples, ratio, step_excess
from sharp.feedback.stability import spacing

_NEGLIGIBLE = 1e-3


def bounds_violation(case: Case) -> Value:
    """Return how far u [n, T, N] leaves the interval from min(0, min u0) to max(1, max u0), over its length.

    The exact solution stays inside: both ends are sub- and supersolutions (comparison principle). The lower end
    holds where u0 >= 0, as all initial conditions of the problem are.
    """

    def measure(sample: Sample) -> float:
        u, start = sample.fields["u"], sample.given["u"]
        low, high = min(0.0, start.min()), max(1.0, start.max())
        return float(np.max([low - u.min(), u.max() - high, 0.0]) / (high - low))

    return mean_over_samples(case, measure)


def reaction_consistency(case: Case) -> Value:
    """Return how far the growth of the mean of u [n, T, N] is from the exact reaction, relative to that growth.

    Diffusion leaves the mean over the period alone; only reaction changes it. Every output frame is advanced to the
    next by one step of Strang splitting in which both parts are exact, a factor exp(-nu k^2 dt) a Fourier mode and
    u e / (1 + u (e - 1)) with e = exp(rho dt), and the mean is compared with that of the predicted next frame. So a
    reaction rate off by 10 % gives 0.1. Left for the exact solution is the splitting error, of order dt^2: 3e-4 for
    the times of the problem, nearly all of it at the steep start. Growth counts as at least 1/1000 of
    rho dt u, so that the rounding of a steady solution does not matter.
    """
    nu, rho = (case.problem.parameters[name] for name in ("nu", "rho"))

    def measure(sample: Sample) -> float:
        before, after = sample.fields["u"][:-1], sample.fields["u"][1:].mean(axis=1)
        dt = np.diff(sample.t)[:, None]
        mean, expected = before.mean(axis=1), _reacted(before, sample.dx, nu, rho, dt)
        growth = np.abs(expected - mean) + _NEGLIGIBLE * rho * dt[:, 0] * np.abs(mean)
        return ratio(np.abs(after - expected).sum(), growth.sum())

    return mean_over_samples(case, measure)


def reaction_step(case: Case) -> Value:
    """Return by how much rho dt exceeds 1 for the printed step: beyond, an explicit step may overshoot u = 1."""
    return step_excess(case, case.problem.parameters["rho"], "rho dt")


def diffusive_cfl(case: Case) -> Value:
    """Return by how much 2 nu dt/dx^2 exceeds 1 for the printed step: beyond, explicit diffusion is unstable."""
    rate = 2 * case.problem.parameters["nu"] / spacing(case.problem, case.inputs) ** 2
    return step_excess(case, rate, "2 nu dt/dx^2")


def _reacted(u: Array, dx: float, nu: float, rho: float, dt: Array) -> Array:
    """Return the means [K] of u [K, N] after half a step of diffusion and one of reaction, of lengths dt [K, 1].

    The other half step of diffusion would not change them.
    """
    waves = 2 * np.pi * np.fft.rfftfreq(u.shape[1], dx)
    u = np.fft.irfft(np.exp(-0.5 * nu * waves**2 * dt) * np.fft.rfft(u), u.shape[1])
    growth = np.exp(rho * dt)
    return np.asarray((u * growth / (1 + u * (growth - 1))).mean(axis=1))


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="bounds_violation",
        title="Maximum principle and positivity violation",
        families=("reaction-diffusion",),
        description="How far u falls below 0 or exceeds both 1 and its initial maximum, which the equation forbids.",
        source="Protter and Weinberger, Maximum Principles in Differential Equations, 1984, chapter 3; Smoller, Shock "
        "Waves and Reaction-Diffusion Equations, 1994, chapter 14 (invariant regions)",
        shape="the smallest and the largest value of every sample",
        normalisation="distance from the allowed interval over its length; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=bounds_violation,
    ),
    Measure(
        name="reaction_consistency",
        title="Consistency with the exact reaction",
        families=("reaction-diffusion",),
        description="How far the growth of the mean from one output time to the next is from what the exact solution "
        "of the logistic equation makes of the frame before: a wrong rate, growth lost to rounding or splitting.",
        source="Strang, SIAM J. Numer. Anal. 5, 1968; Hundsdorfer and Verwer, Numerical Solution of Time-Dependent "
        "Advection-Diffusion-Reaction Equations, 2003, section IV.1 (operator splitting)",
        shape="all samples, all pairs of successive output times",
        normalisation="sum of the differences of means over the sum of the exact growth; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=reaction_consistency,
    ),
    Measure(
        name="reaction_step",
        title="Safe step for the reaction",
        families=("reaction-diffusion",),
        description="How far the internal time step that the program printed (`dt=...`, or `steps=...`) exceeds 1/rho, "
        "beyond which an explicit step may overshoot u = 1. It says nothing against exact or implicit reaction steps.",
        source="Hundsdorfer and Verwer, Numerical Solution of Time-Dependent Advection-Diffusion-Reaction Equations, "
        "2003, section I.7 (positivity)",
        shape="the printed step",
        normalisation="rho dt less 1; 0 below",
        needs_reference=False,
        needs_coarse=False,
        function=reaction_step,
    ),
    Measure(
        name="diffusive_cfl",
        title="Diffusion number",
        families=("reaction-diffusion",),
        description="How far the internal time step that the program printed (`dt=...`, or `steps=...`) exceeds "
        "dx^2/(2 nu), beyond which explicit diffusion on the output grid is unstable. It says nothing against "
        "implicit or exact diffusion.",
        source="LeVeque, Finite Difference Methods for Ordinary and Partial Differential Equations, 2007, section 9.3",
        shape="the printed step and the output grid",
        normalisation="2 nu dt/dx^2 less 1; 0 below",
        needs_reference=False,
        needs_coarse=False,
        function=diffusive_cfl,
    ),
)
