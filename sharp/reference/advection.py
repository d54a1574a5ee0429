"""Linear advection u_t + beta u_x = 0 on a period: the exact shift, the published scheme, and metrics of waves.

Every Fourier mode turns at the same speed and keeps its amplitude; that is what the metrics measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems.problem import Problem
from sharp.reference import pdebench_schemes, periodic_problems, spectral
from sharp.reference.chunking import Progress
from sharp.reference.datasets import Inputs, ReferenceSolution, spacing
from sharp.reference.family import BenchmarkFamily, SmoothTestProblem, StepLimit, about
from sharp.reference.initial import Evaluate
from sharp.reference.metrics import (
    Array,
    FieldSample,
    MetricInput,
    MetricValue,
    drift,
    mean_over_samples,
    metric,
    ratio,
)
from sharp.reference.residual import BalanceLaw, BalanceLaws, FluxTerm, evolution_residual
from sharp.reference.spectral import Real, coefficients, relative_l2, wave_numbers

CFL = 0.4
# The share of the energy of the start that modes must hold together to be measured.
_DOMINANT = 0.99


def solve_reference(
    problem: Problem,
    initial: Mapping[str, NDArray[Any]],
    t: NDArray[Any],
    *,
    tolerance: float = 1e-8,  # noqa: ARG001  nothing is refined: the shift is exact
    evaluate: Evaluate | None = None,
    progress: Progress | None = None,
) -> ReferenceSolution:
    """Shift the given functions, or the trigonometric interpolants of their values, by beta t.

    The error is that of interpolation, or of rounding where the functions are known.
    """
    if evaluate is not None:
        return _shift_functions(problem, initial, t, evaluate)
    values = periodic_problems.given(problem, initial).astype(np.float64)
    points = values.shape[-1]
    waves = wave_numbers(points // 2 + 1, periodic_problems.period(problem))
    distance = _speed(problem) * (t.astype(np.float64) - t[0])

    def shift_from(coarse: Real) -> Real:
        spectrum = coefficients(coarse, len(waves))[:, None]
        return spectral.evaluate(spectrum * np.exp(-1j * waves * distance[:, None]), points)

    def work(rows: slice) -> tuple[Real, Real]:
        frames = shift_from(values[rows])
        frames[:, 0] = values[rows]
        return frames, periodic_problems.interpolation_error(shift_from, values[rows], frames)

    return periodic_problems.solve_blocks(problem, work, len(values), progress)


def _shift_functions(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], evaluate: Evaluate
) -> ReferenceSolution:
    values = periodic_problems.given(problem, initial).astype(np.float64)
    x = periodic_problems.grid(problem, values.shape[-1])
    distances = _speed(problem) * (t.astype(np.float64) - t[0])
    frames = np.stack(
        [periodic_problems.given(problem, evaluate(x - distance)) for distance in distances], axis=1
    )
    rounding = relative_l2(values, frames[:, 0])
    return ReferenceSolution(periodic_problems.returned(problem, frames), rounding)


def solve_pdebench(
    problem: Problem, initial: Mapping[str, NDArray[Any]], t: NDArray[Any], progress: Progress | None = None
) -> dict[str, NDArray[np.float32]]:
    """Solve as the published generator does, in float32."""
    beta, dx = (
        _speed(problem),
        periodic_problems.period(problem) / periodic_problems.given(problem, initial).shape[-1],
    )

    def flux(cells: Any) -> Any:
        left, right = pdebench_schemes.face_states(cells)
        return beta * (left if beta >= 0 else right)

    solve = pdebench_schemes.finite_volumes(flux, lambda _: CFL * dx / abs(beta), dx)
    return periodic_problems.solve_published(problem, solve, initial, t, progress)


def balance_laws(problem: Problem) -> BalanceLaws:
    """u_t + (beta u)_x = 0."""
    beta = _speed(problem)
    return BalanceLaws(lambda fields, _: {"u": BalanceLaw(fields["u"], (FluxTerm(1, beta * fields["u"]),))})


def step_limits(problem: Problem, inputs: Inputs) -> tuple[StepLimit, ...]:
    """Return the bound of transport over a cell (Courant, Friedrichs and Lewy 1928)."""
    return (StepLimit("transport", "dx/beta", abs(_speed(problem)) / spacing(problem, inputs)),)


@metric(
    "Phase error",
    description="How far waves are ahead of or behind their exact place: dispersion, or a wrong speed.",
    source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.6 (modified equations); "
    "Trefethen, SIAM Review 24, 1982 (group velocity)",
    shape="the Fourier modes that hold 99 % of the energy of the start, at all later times",
    normalisation="phase difference over pi (1: opposite phase); root mean square over times and over modes "
    "weighted by energy; mean over samples",
)
def phase_error(case: MetricInput) -> MetricValue:
    """Return the phase error of the dominant modes in units of pi: root mean square over time and energy.

    For u [n, T, N]. Mode k of the exact solution is that of the start, turned by -2 pi k beta t/L, so no
    reference is needed. 0 up to rounding where the grid resolves u; at kinks, modes that the grid cannot tell
    apart add about (dx/L)^2. A mode that has vanished has no phase: `damping` counts it.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: FieldSample) -> float:
        gains, weights = _gains(sample, beta)
        return _rms(np.angle(gains) / np.pi, weights)

    return mean_over_samples(case, measure)


@metric(
    "Amplitude damping",
    description="How far the amplitudes of waves are from those of the start, which advection preserves: "
    "numerical dissipation, or growth.",
    source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.6 (modified equations)",
    shape="the Fourier modes that hold 99 % of the energy of the start, at all later times",
    normalisation="change of amplitude over amplitude; root mean square over times and over modes weighted "
    "by energy; mean over samples",
)
def damping(case: MetricInput) -> MetricValue:
    """Return the relative amplitude error of the dominant modes: root mean square over time and energy.

    For u [n, T, N]. Growth counts as decay does. As exact as `phase_error`.
    """
    beta = case.problem.parameters["beta"]

    def measure(sample: FieldSample) -> float:
        gains, weights = _gains(sample, beta)
        return _rms(np.abs(gains) - 1, weights)

    return mean_over_samples(case, measure)


@metric(
    "Mass drift",
    description="How far the integral of u strays from that of the initial condition.",
    source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 4.1 (conservation)",
    shape="all samples, times and points",
    normalisation="largest change in time over the integral of |u| at the start; mean over samples",
)
def mass_drift(case: MetricInput) -> MetricValue:
    """Return the largest change in time of the integral of u, over that of |u| at the start.

    For u [n, T, N]. Sums over a period are exact where the grid resolves u; at kinks they are off by about
    (dx/L)^2.
    """
    return mean_over_samples(case, lambda s: drift(s.fields["u"], s.given["u"], np.abs(s.given["u"])))


@metric(
    "L2 drift",
    description="How far the L2 norm of u strays from that of the initial condition, which advection "
    "preserves.",
    source="LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002, section 8.3 (norms and stability)",
    shape="all samples, times and points",
    normalisation="largest change in time over the norm at the start; mean over samples",
)
def l2_drift(case: MetricInput) -> MetricValue:
    """Return the largest relative change in time of the L2 norm of u [n, T, N]; as exact as `mass_drift`."""

    def measure(sample: FieldSample) -> float:
        norms = np.linalg.norm(sample.fields["u"], axis=1)
        start = float(np.linalg.norm(sample.given["u"]))
        return ratio(np.abs(norms - start).max(), start)

    return mean_over_samples(case, measure)


def _gains(sample: FieldSample, beta: float) -> tuple[NDArray[np.complex128], Array]:
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


def _speed(problem: Problem) -> float:
    return problem.parameters["beta"]


FAMILY = BenchmarkFamily(
    name="advection",
    sample_initial=periodic_problems.sample_sines,
    solve_reference=solve_reference,
    reference_scheme="exact shift",
    solve_pdebench=solve_pdebench,
    pdebench_scheme="finite volumes, limited slopes (MC), upwind flux, midpoint rule, CFL 0.4",
    residual=partial(evolution_residual, balance_laws),
    # A shift by L/6 is one by a third of a cell (or two thirds) on every grid: none of whole cells, where
    # interpolation is exact.
    smooth=SmoothTestProblem(
        {"u": about(1.0, 0.5)}, lambda problem: periodic_problems.period(problem) / (6 * abs(_speed(problem)))
    ),
    metrics=(phase_error, damping, mass_drift, l2_drift),
    step_limits=step_limits,
)
