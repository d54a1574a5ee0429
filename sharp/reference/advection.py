"""Linear advection u_t + beta u_x = 0 on a period: the exact shift, the published scheme, and metrics of waves.

Every Fourier mode turns at the same speed and keeps its amplitude; that is what the metrics measure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.problems import Problem
from sharp.reference import periodic_problems, spectral
from sharp.reference.datasets import Inputs, spacing
from sharp.reference.family import (
    BenchmarkFamily,
    PublishedScheme,
    ReferenceScheme,
    SmoothTestProblem,
    StepLimit,
    about,
)
from sharp.reference.initial import Evaluate
from sharp.reference.metrics import Array, FieldSample, drift, ratio, sample_metric
from sharp.reference.residual import BalanceLaw, BalanceLaws, FluxTerm, evolution_residual
from sharp.reference.spectral import Real, coefficients, relative_l2, wave_numbers

CFL = 0.4
# The share of the energy of the start that modes must hold together to be measured.
_DOMINANT = 0.99


def _shift(
    problem: Problem,
    values: Real,
    t: NDArray[Any],
    _tolerance: float,  # nothing is refined: the shift is exact
    evaluate: Evaluate | None,
) -> Callable[[slice], tuple[Real, Real]]:
    """Shift the given functions, or the trigonometric interpolants of their values, by beta t.

    The error is that of interpolation, or of rounding where the functions are known.
    """
    points = values.shape[-1]
    distances = _speed(problem) * (t.astype(np.float64) - t[0])
    if evaluate is not None:
        x = periodic_problems.grid(problem, points)
        shifted = [periodic_problems.only_value(evaluate(x - distance)) for distance in distances]
        known = np.stack(shifted, axis=1)
        rounding = relative_l2(values, known[:, 0])
        return lambda rows: (known[rows], rounding[rows])
    waves = wave_numbers(points // 2 + 1, periodic_problems.period(problem))

    def shift_from(coarse: Real) -> Real:
        spectrum = coefficients(coarse, len(waves))[:, None]
        return spectral.evaluate(spectrum * np.exp(-1j * waves * distances[:, None]), points)

    def work(rows: slice) -> tuple[Real, Real]:
        frames = shift_from(values[rows])
        frames[:, 0] = values[rows]
        return frames, periodic_problems.interpolation_error(shift_from, values[rows], frames)

    return work


def _upwind(problem: Problem, values: Real, t: NDArray[Any]) -> Callable[[slice], NDArray[np.float32]]:
    from sharp.reference import pdebench_schemes  # loads JAX

    beta, dx = _speed(problem), periodic_problems.period(problem) / values.shape[-1]

    def flux(cells: Any) -> Any:
        left, right = pdebench_schemes.face_states(cells)
        return beta * (left if beta >= 0 else right)

    return pdebench_schemes.finite_volumes(flux, lambda _: CFL * dx / abs(beta), dx, values, t)


def balance_laws(problem: Problem) -> BalanceLaws:
    """u_t + (beta u)_x = 0."""
    beta = _speed(problem)
    return BalanceLaws(lambda fields, _: {"u": BalanceLaw(fields["u"], (FluxTerm(1, beta * fields["u"]),))})


def step_limits(problem: Problem, inputs: Inputs) -> tuple[StepLimit, ...]:
    """Return the bound of transport over a cell (Courant, Friedrichs and Lewy 1928)."""
    return (StepLimit("transport", "dx/beta", abs(_speed(problem)) / spacing(problem, inputs)),)


@sample_metric()
def phase_error(sample: FieldSample) -> float:
    """Return the phase error of the dominant modes in units of pi.

    Mode k of the exact solution is that of the start, turned by -2 pi k beta t/L, so no reference is needed. 0 up to
    rounding where the grid resolves u; at kinks, modes that the grid cannot tell apart add about (dx/L)^2. A mode that
    has vanished has no phase: `damping` counts it.
    """
    gains, weights = _gains(sample)
    return _rms(np.angle(gains) / np.pi, weights)


@sample_metric()
def damping(sample: FieldSample) -> float:
    """Return the relative amplitude error of the dominant modes; growth counts as decay, as exact as `phase_error`."""
    gains, weights = _gains(sample)
    return _rms(np.abs(gains) - 1, weights)


@sample_metric()
def mass_drift(sample: FieldSample) -> float:
    """Return the drift of the integral: exact where the grid resolves u, off by about (dx/L)^2 at kinks."""
    return drift(sample.fields["u"], sample.given["u"], np.abs(sample.given["u"]))


@sample_metric()
def l2_drift(sample: FieldSample) -> float:
    """Return the largest relative change in time of the L2 norm of u; as exact as `mass_drift`."""
    norms = np.linalg.norm(sample.fields["u"], axis=1)
    start = float(np.linalg.norm(sample.given["u"]))
    return ratio(np.abs(norms - start).max(), start)


def _gains(sample: FieldSample) -> tuple[NDArray[np.complex128], Array]:
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
    speed = 2 * np.pi * _speed(sample.problem) / (u.size * sample.dx)
    exact = start[modes] * np.exp(-1j * speed * modes * (sample.t[1:, None] - sample.t[0]))
    return np.fft.rfft(sample.fields["u"][1:])[:, modes] / exact, energy[modes] / energy[modes].sum()


def _rms(errors: Array, weights: Array) -> float:
    return float(np.sqrt((errors**2 @ weights).mean()))


def _speed(problem: Problem) -> float:
    return problem.parameters["beta"]


FAMILY = BenchmarkFamily(
    name="advection",
    sample_initial=periodic_problems.sample_sines,
    reference=ReferenceScheme("exact shift", _shift, tolerance=1e-8, together=periodic_problems.BLOCK),
    published=PublishedScheme(
        "finite volumes, limited slopes (MC), upwind flux, midpoint rule, CFL 0.4",
        _upwind,
        periodic_problems.BLOCK,
    ),
    residual=partial(evolution_residual, balance_laws),
    # A shift by L/6 is one by a third of a cell (or two thirds) on every grid: none of whole cells, where
    # interpolation is exact.
    smooth=SmoothTestProblem(
        {"u": about(1.0, 0.5)}, lambda problem: periodic_problems.period(problem) / (6 * abs(_speed(problem)))
    ),
    metrics=(phase_error, damping, mass_drift, l2_drift),
    step_limits=step_limits,
)
