"""Measures for linear advection: every Fourier mode turns at the same speed and keeps its amplitude."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sharp.feedback.measure import Case, Measure, Value
from sharp.feedback.samples import Array, Sample, drift, mean_over_samples, ratio

_DOMINANT = 0.99


def phase_error(case: Case) -> Value:
    """Return the phase error of the dominant modes in units of pi: root mean square over time and energy.

    For u [n, T, N]. Mode k of the exact solution is that of the start, turned by -2 pi k beta t/L, so no
    reference is needed. 0 up to rounding where the grid resolves u; at kinks, modes that the grid cannot tell
    apart add about (dx/L)^2. A mode that has vanished has no phase: `damping` counts it.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample) -> float:
        gains, weights = _gains(sample, beta)
        return _rms(np.angle(gains) / np.pi, weights)

    return mean_over_samples(case, measure)


def damping(case: Case) -> Value:
    """Return the relative amplitude error of the dominant modes: root mean square over time and energy.

    For u [n, T, N]. Growth counts as decay does. As exact as `phase_error`.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: Sample) -> float:
        gains, weights = _gains(sample, beta)
        return _rms(np.abs(gains) - 1, weights)

    return mean_over_samples(case, measure)


def mass_drift(case: Case) -> Value:
    """Return the largest change in time of the integral of u, over that of |u| at the start.

    For u [n, T, N]. Sums over a period are exact where the grid resolves u; at kinks they are off by about
    (dx/L)^2.
    """
    return mean_over_samples(case, lambda s: drift(s.fields["u"], s.given["u"], np.abs(s.given["u"])))


def l2_drift(case: Case) -> Value:
    """Return the largest relative change in time of the L2 norm of u [n, T, N]; as exact as `mass_drift`."""

    def measure(sample: Sample) -> float:
        norms = np.linalg.norm(sample.fields["u"], axis=1)
        start = float(np.linalg.norm(sample.given["u"]))
        return ratio(np.abs(norms - start).max(), start)

    return mean_over_samples(case, measure)


def _gains(sample: Sample, beta: float) -> tuple[NDArray[np.complex128], Array]:
    """Return predicted over exact coefficients of the dominant modes after the start [T-1, K], and weights [K].

    Dominant are the fewest modes that hold 99 % of the energy of the start without its mean; their weights
    are their shares of it. A constant start has none.
    """
    u = sample.given["u"]
    start = np.fft.rfft(u)
    start[0] = 0.0
    energy = np.abs(start) ** 2
    modes = np.argsort(-energy)
    modes = modes[: np.searchsorted(np.cumsum(energy[modes]), _DOMINANT * energy.sum()) + 1]
    modes = modes[energy[modes] > 0]
    speed = 2 * np.pi * beta / (u.size * sample.dx)
    exact = start[modes] * np.exp(-1j * speed * modes * (sample.t[1:, None] - sample.t[0]))
    return np.fft.rfft(sample.fields["u"][1:])[:, modes] / exact, energy[modes] / energy[modes].sum()


def _rms(errors: Array, weights: Array) -> float:
    return float(np.sqrt((errors**2 @ weights).mean()))


MEASURES: tuple[Measure, ...] = (
    Measure(
        name="phase_error",
        title="Phase error",
        families=("advection",),
        description="How far waves are ahead of or behind their exact place: dispersion, or a wrong speed.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.6 (modified equations); "
        "Trefethen, SIAM Review 24, 1982 (group velocity)",
        shape="the Fourier modes that hold 99 % of the energy of the start, at all later times",
        normalisation="phase difference over pi (1: opposite phase); root mean square over times and over modes "
        "weighted by energy; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=phase_error,
    ),
    Measure(
        name="damping",
        title="Amplitude damping",
        families=("advection",),
        description="How far the amplitudes of waves are from those of the start, which advection preserves: "
        "numerical dissipation, or growth.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.6 (modified equations)",
        shape="the Fourier modes that hold 99 % of the energy of the start, at all later times",
        normalisation="change of amplitude over amplitude; root mean square over times and over modes weighted "
        "by energy; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=damping,
    ),
    Measure(
        name="mass_drift",
        title="Mass drift",
        families=("advection",),
        description="How far the integral of u strays from that of the initial condition.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 4.1 (conservation)",
        shape="all samples, times and points",
        normalisation="largest change in time over the integral of |u| at the start; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=mass_drift,
    ),
    Measure(
        name="l2_drift",
        title="L2 drift",
        families=("advection",),
        description="How far the L2 norm of u strays from that of the initial condition, which advection "
        "preserves.",
        source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.3 (norms and stability)",
        shape="all samples, times and points",
        normalisation="largest change in time over the norm at the start; mean over samples",
        needs_reference=False,
        needs_coarse=False,
        function=l2_drift,
    ),
)
