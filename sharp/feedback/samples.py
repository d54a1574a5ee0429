"""Samples one at a time in double precision, and sums over them: what measures of one problem share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.feedback.measure import Case, Value
from sharp.feedback.stability import internal_step, spacing

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    """One sample: `fields` [T, N] and what was `given` [N] by field name, times `t` [T], the spacing `dx`.

    Steady problems have `fields` and `given` [N, N] and no times.
    """

    fields: Mapping[str, Array]
    given: Mapping[str, Array]
    t: Array
    dx: float


def samples(case: Case) -> Iterator[Sample]:
    """Yield the samples of a case; no more than one is held in double precision."""
    interface, dx = case.problem.interface, spacing(case.problem, case.inputs)
    t = np.zeros(0) if case.inputs.t is None else np.asarray(case.inputs.t, np.float64)
    for index in range(len(next(iter(case.prediction.values())))):
        returned = {port.field: case.prediction[port.name][index] for port in interface.returns}
        given = {port.field: case.inputs.arrays[port.name][index] for port in interface.inputs}
        yield Sample(_double(returned), _double(given), t, dx)


def mean_over_samples(case: Case, measure: Callable[[Sample], float | None], absent: str = "") -> Value:
    """Return the mean of what `measure` finds in the samples; the note names the worst of them.

    Samples in which it finds nothing to measure (None) are left out; without any other the value is None, for
    the reason `absent`, and so it is where numbers overflow.
    """
    with np.errstate(all="ignore"):
        measured = {index: measure(sample) for index, sample in enumerate(samples(case))}
    found = {index: value for index, value in measured.items() if value is not None}
    if not found:
        return Value(None, absent)
    worst = max(found, key=lambda index: np.nan_to_num(found[index], nan=np.inf))
    if not np.isfinite(found[worst]):
        return Value(None, f"the numbers of sample {worst} overflow")
    notes = [f"largest in sample {worst}: {found[worst]:.2e}"] if len(found) > 1 and found[worst] > 0 else []
    notes += [f"in {len(found)} of {len(measured)} samples"] if len(found) < len(measured) else []
    return Value(float(np.mean(list(found.values()))), ", ".join(notes))


def ratio(size: float, scale: float) -> float:
    """Return size / scale, undivided where the scale is 0."""
    return float(size / scale) if scale != 0 else float(size)


def drift(quantity: Array, start: Array, scale: Array) -> float:
    """Return how far the mean of `quantity` [T, N] over x strays from that of `start` [N], over that of `scale`."""
    return ratio(np.abs(quantity.mean(axis=1) - start.mean()).max(), scale.mean())


def jumps(u: Array) -> Array:
    """Return what u [T, N] gains from each point to the next on a period."""
    gained = np.empty_like(u)
    np.subtract(u[:, 1:], u[:, :-1], out=gained[:, :-1])
    gained[:, -1] = u[:, 0] - u[:, -1]
    return gained


def largest_rise(series: Array) -> Array:
    """Return how far a series [T, ...] ever rises above its smallest earlier value, 0 where it never rises.

    Unlike the sum of all rises, this does not grow with the number of steps of a series that jitters.
    """
    return np.asarray(np.max(series - np.minimum.accumulate(series, axis=0), axis=0))


def accumulated(t: Array, rates: Array) -> Array:
    """Return the integrals over time of rates [T, J] up to each time t [T].

    The trapezoidal rule with the first correction of Euler and Maclaurin, of order 4 for equal steps.
    """
    dt = np.diff(t)[:, None]
    slopes = np.gradient(rates, t, axis=0, edge_order=2 if dt.size > 1 else 1)
    pieces = 0.5 * dt * (rates[1:] + rates[:-1]) - dt**2 / 12 * np.diff(slopes, axis=0)
    return np.concatenate([np.zeros_like(rates[:1]), np.cumsum(pieces, axis=0)])


def step_excess(case: Case, rate: float, what: str) -> Value:
    """Return by how much the internal time step times `rate` exceeds 1: 0 up to there.

    None where the program printed no usable time step or number of steps.
    """
    dt = _internal_step(case)
    if dt is None:
        return Value(None, "the program printed neither `dt=...` nor `steps=...`")
    if not np.isfinite(rate):
        return Value(None, "the numbers overflow")
    return Value(max(0.0, dt * rate - 1), f"{what}: {dt * rate:.3g} with the internal step {dt:.3g}")


def _internal_step(case: Case) -> float | None:
    dt = internal_step(case.internal_dt, case.internal_steps, case.inputs.t)
    return dt if dt is not None and np.isfinite(dt) and dt > 0 else None


def _double(arrays: Mapping[str, NDArray[np.generic]]) -> dict[str, Array]:
    return {field: values.astype(np.float64) for field, values in arrays.items()}
