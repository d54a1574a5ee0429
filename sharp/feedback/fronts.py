"""Whether steep fronts of a gas move at the speed that the jump conditions of Rankine and Hugoniot give them."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import numpy as np
from numpy.typing import NDArray

from sharp.feedback.measure import Case, Value
from sharp.feedback.samples import Array, Sample, jumps, mean_over_samples
from sharp.numerics.balances import Balance, Fields, Term, navier_stokes
from sharp.numerics.stencils import SecondOrder

_STEEP = 30
_MOST_FRAMES = 8
_WIDEST = 0.5


def rankine_hugoniot(case: Case) -> Value:
    """Return the error of the speed of fronts over that of the fastest wave, |v| + c.

    For velocity, density and pressure [n, T, N]. A front is the largest difference of pressure between neighbours
    where that stays steep until the next output time: 1/30 of the period would do for the range of the pressure.
    With U mass, momentum and energy and F their fluxes, a box around the front that it does not leave until then
    must obey d/dt (integral of U) = -[F]; a front of jump [U] that moves at the speed s instead of s* misses that
    by (s - s*) [U]. The mean over at most 8 output times with a front; None where the solution is smooth. Left for
    the exact solution is what the trapezoidal rule makes of fluxes that change within an output step: 0 between
    constant states, 5e-3 where the initial conditions of the problem start with fronts.
    """
    balance = navier_stokes(case.problem)
    smooth = "the solution is smooth: no front of the pressure that stays within half of the period between outputs"
    return mean_over_samples(case, lambda sample: _speed_error(sample, balance), smooth)


def _speed_error(sample: Sample, balance: Balance) -> float | None:
    frames, cells = _fronts(sample.fields["pressure"])
    if not frames.size:
        return None
    assert balance.speed is not None
    times = [{name: values[frames + later] for name, values in sample.fields.items()} for later in (0, 1)]
    fastest, dt = max(map(balance.speed, times)), sample.t[frames + 1] - sample.t[frames]
    points = sample.fields["pressure"].shape[1]
    reach = ceil(points / _STEEP) + ceil(min(fastest * dt.max() / sample.dx, points))
    if 2 * reach + 1 > _WIDEST * points:
        return None
    box = (cells[:, None] + np.arange(-reach, reach + 1)) % points
    missing, jump = _balances(balance, times, box, dt, sample.dx, fastest)
    return float(np.mean(missing / (fastest * jump)))


def _fronts(pressure: Array) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return some frames [K] with a front that is there in the next frame, too, and its cell [K]."""
    steps = np.abs(jumps(pressure))
    steep = steps.max(axis=1) > _STEEP / pressure.shape[1] * np.ptp(pressure, axis=1)
    frames = np.flatnonzero(steep[:-1] & steep[1:])
    frames = frames[:: ceil(frames.size / _MOST_FRAMES) or 1]
    return frames, steps[frames].argmax(axis=1)


def _balances(
    balance: Balance, times: Sequence[Fields], box: NDArray[np.intp], dt: Array, dx: float, fastest: float
) -> tuple[Array, Array]:
    """Return what the balances of the boxes [K, W] miss, and the jumps in them: sums over the equations [K].

    Mass and energy are relative to what is in the box, momentum to the mass times the fastest speed.
    """
    before, after = (balance.equations(fields, SecondOrder(dx)) for fields in times)
    missing, jump = np.zeros(len(box)), np.zeros(len(box))
    for name in before:
        one, other = (np.take_along_axis(found[name].quantity, box, axis=1) for found in (before, after))
        flux = 0.5 * (_flux(before[name].terms, box) + _flux(after[name].terms, box))
        ends = 0.5 * (flux[:, :2] - flux[:, -2:]).sum(axis=1)
        gained = (other - one)[:, 1:-1].sum(axis=1) * dx / dt
        scale = fastest * times[0]["density"] if name == "momentum" else before[name].quantity
        size = np.take_along_axis(scale, box, axis=1).mean(axis=1)
        missing += np.abs(gained - ends) / size
        jump += np.ptp(one, axis=1) / size
    return missing, jump


def _flux(terms: tuple[Term, ...], box: NDArray[np.intp]) -> Array:
    return np.take_along_axis(sum((term.flux for term in terms), np.zeros(())), box, axis=1)
