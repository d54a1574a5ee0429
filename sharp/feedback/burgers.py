"""Measures for Burgers' equation: entropy and total variation must not grow, the mean must not change."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.samples import (
    Array,
    Sample,
    accumulated,
    drift,
    jumps,
    largest_rise,
    mean_over_samples,
    ratio,
    step_excess,
)
from sharp.feedback.stability import spacing
from sharp.numerics.burgers import viscosity

_BUMPS = 16
_POWER = 4


def entropy_violation(case: Case) -> Value:
    """Return how much entropy u^2/2 is produced, in excess of viscosity's loss, over that of the start.

    For u [n, T, N]. The entropy inequality (u^2/2)_t + (u^3/3)_x <= kappa ((u^2/2)_xx - u_x^2), kappa = nu/pi, is
    integrated against 16 smooth bumps that add up to 1, each as wide as a quarter of the period; that keeps rates
    smooth in time even where a shock crosses many cells between output times. What counts for each bump is how far
    the accumulated production ever rises above its smallest earlier value. 0 for an entropy solution: differences
    of neighbours never overestimate the integral of u_x^2, so that a viscous shock between two points counts as
    loss, never as production. Left are integrals over time, of order 4 in the output step.
    """
    kappa = viscosity(case.problem)
    points = next(iter(case.inputs.arrays.values())).shape[-1]
    bumps = _Bumps.on(points, points * spacing(case.problem, case.inputs))

    def measure(sample: Sample) -> float:
        produced = bumps.production(sample, kappa)
        return ratio(largest_rise(produced).sum(), 0.5 * float(np.square(sample.given["u"]).mean()))

    return mean_over_samples(case, measure)


def tv_growth(case: Case) -> Value:
    """Return how far the total variation of u [n, T, N] ever rises above its smallest earlier value, over the first.

    The exact total variation never rises. Sampled, that of a moving extremum jitters by (dx/L)^2.
    """

    def measure(sample: Sample) -> float:
        variation = np.append(_variation(sample.given["u"][None]), _variation(sample.fields["u"]))
        return ratio(float(largest_rise(variation)), variation[0])

    return mean_over_samples(case, measure)


def mean_drift(case: Case) -> Value:
    """Return the largest change in time of the mean of u [n, T, N], over that of |u| at the start.

    Sums over a period are exact where the grid resolves u; at kinks they are off by about (dx/L)^2.
    """
    return mean_over_samples(case, lambda s: drift(s.fields["u"], s.given["u"], np.abs(s.given["u"])))


def characteristic_cfl(case: Case) -> Value:
    """Return by how much max |u| dt/dx exceeds 1, for the printed step and the largest |u| [n, T, N] at any time."""
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

    @staticmethod
    def on(points: int, length: float) -> _Bumps:
        """Return cos^8(pi (x - x_j)/L), scaled so that all 16 add up to 1."""
        waves = 2j * np.pi / length * np.arange(points // 2 + 1)[:, None]
        angle = np.pi * (np.arange(points)[:, None] / points - np.arange(_BUMPS) / _BUMPS)
        at = np.cos(angle) ** (2 * _POWER)
        spectrum = np.fft.rfft(at / at[0].sum(), axis=0)

        def back(factor: NDArray[np.complexfloating]) -> Array:
            return np.fft.irfft(factor * spectrum, points, axis=0)

        halfway = np.exp(0.5 * waves * length / points)
        return _Bumps(back(waves**0), back(halfway), back(waves), back(waves**2))

    def production(self, sample: Sample, kappa: float) -> Array:
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


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="entropy_violation",
        title="Entropy inequality violation",
        families=("burgers",),
        description="Entropy u^2/2 that appears where only viscosity may change it, and only downwards: expansion "
        "shocks, shocks thinner than viscosity allows, instability.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 11.14 (entropy functions); "
        "Tadmor, Acta Numerica 12, 2003",
        shape="all samples, times and points; 16 overlapping parts of the period",
        normalisation="largest accumulated production, summed over the parts, over the entropy of the start; mean "
        "over samples",
        needs_reference=False,
        needs_coarse=False,
        function=entropy_violation,
    ),
    Measure(
        name="tv_growth",
        title="Growth of total variation",
        families=("burgers",),
        description="How much the total variation grows, which the exact solution never lets grow: oscillations.",
        source="Harten, J. Comput. Phys. 49, 1983; LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, "
        "section 6.7 (total variation)",
        shape="all samples, times and points",
        normalisation="largest rise above any earlier value, over the total variation of the start; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=tv_growth,
    ),
    Measure(
        name="mean_drift",
        title="Mean drift",
        families=("burgers",),
        description="How far the mean of u strays from that of the initial condition.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 4.1 (conservation)",
        shape="all samples, times and points",
        normalisation="largest change in time over the mean of |u| at the start; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=mean_drift,
    ),
    Measure(
        name="characteristic_cfl",
        title="Courant number of the characteristics",
        families=("burgers",),
        description="How far the internal time step that the program printed (`dt=...`, or `steps=...`) lets "
        "characteristics travel beyond one cell of the output grid. It says nothing against implicit time stepping.",
        source="Courant, Friedrichs and Lewy, Math. Ann. 100, 1928; LeVeque, Finite Volume Methods for Hyperbolic "
        "Problems, 2002, section 4.4 (CFL condition)",
        shape="the printed step, and the largest |u| of all samples, times and points",
        normalisation="max |u| dt/dx less 1; 0 below",
        needs_reference=False,
        needs_coarse=False,
        function=characteristic_cfl,
    ),
)
