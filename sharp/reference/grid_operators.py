"""Derivatives of solutions on output grids: periodic in space, on any increasing times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from sharp.solvers import fornberg_weights as stencil_weights

Array = NDArray[np.float64]


SpaceDerivative = Callable[[Array, int], Array]
"""The first or second derivative of u [..., N] along the last axis, periodic; of order 0 it is u itself."""


def central_differences(dx: float, accuracy: int) -> SpaceDerivative:
    """Return central differences of an even order of accuracy at spacing `dx`.

    They add up pairs of neighbours; a constant has the derivative 0 exactly, as all is relative to the centre.
    """

    def derivative(u: Array, by: int) -> Array:
        if by == 0:
            return u
        half, points = accuracy // 2, u.shape[-1]
        weights = stencil_weights(tuple(range(-half, half + 1)), by)[half + 1 :]
        wide, total = np.concatenate([u[..., -half:], u, u[..., :half]], axis=-1), np.zeros_like(u)
        for distance, weight in enumerate(weights, start=1):
            after = wide[..., half + distance : half + distance + points]
            before = wide[..., half - distance : half - distance + points]
            pair = after - before if by == 1 else (after - u) + (before - u)
            pair *= weight / dx**by
            total += pair
        return total

    return derivative


def fourier_derivative(dx: float, n: int) -> SpaceDerivative:
    """Return derivatives of the trigonometric interpolant of `n` values at spacing `dx`.

    The first derivative of the highest mode of an even number of points is zero.
    """
    waves = np.asarray(2 * np.pi * np.fft.rfftfreq(n, dx), np.float64)
    odd_waves = np.where(np.arange(n // 2 + 1) < n / 2, waves, 0.0)
    symbols = {1: 1j * odd_waves, 2: -(waves**2)}
    return lambda u, by: np.fft.irfft(symbols[by] * np.fft.rfft(u), n) if by else u


def smoothed(u: Array, length: float, dx: float) -> Array:
    """Return `(1 - length^2 d_xx)^-1 u`, a mean of u [..., N] over about `length`, at spacing `dx`."""
    waves = 2 * np.pi * np.fft.rfftfreq(u.shape[-1], dx)
    return np.fft.irfft(np.fft.rfft(u) / (1 + (length * waves) ** 2), u.shape[-1])


@dataclass(frozen=True)
class TimeOperator:
    """A relation between rates and values on some frames k: `sum_j means[k, j] q_t = sum_j rates[k, j] q`.

    j runs over as many frames on both sides of k; the means add up to 1.
    """

    frames: range
    rates: Array
    means: Array

    def derivative(self, q: Array) -> Array:
        """Return the right-hand side [frames, N] for values [T, N]."""
        return self._combined(q, self.rates)

    def mean(self, q: Array) -> Array:
        """Return the left-hand side [frames, N] for what stands for q_t, [T, N]."""
        return self._combined(q, self.means)

    def _combined(self, q: Array, weights: Array) -> Array:
        width = weights.shape[1]
        around = sliding_window_view(q, width, axis=0)[shifted(self.frames, -(width // 2))]
        return np.asarray(np.einsum("kj,knj->kn", weights, around))


def central(t: Array, frames: range) -> TimeOperator:
    """Return the central difference on three frames, of order 2 (where times are not equally spaced, too)."""
    return TimeOperator(frames, *_weights(tuple(t), frames, half=1, implicit=False))


def compact(t: Array, frames: range) -> TimeOperator:
    """Return the compact difference on five frames: exact for polynomials of degree 8 on any times.

    On equally spaced ones it is the pentadiagonal scheme of order 8 of Lele, "Compact finite difference
    schemes with spectral-like resolution", J. Comput. Phys. 103 (1992): 1.3 % off for pi samples a period,
    where a central difference of order 4 is off by 33 %.
    """
    return TimeOperator(frames, *_weights(tuple(t), frames, half=2, implicit=True))


def shifted(frames: range, offset: int) -> slice:
    """Return the slice of the frames `offset` later."""
    return slice(frames.start + offset, frames.stop + offset, frames.step)


@lru_cache(maxsize=16)
def _weights(times: tuple[float, ...], frames: range, half: int, implicit: bool) -> tuple[Array, Array]:
    """Return rates and means [frames, 2 half + 1] that make the relation exact for the highest degree.

    Unknown are the rates and, if `implicit`, the means; known are one equation a degree, and the sum of the
    means.
    """
    t = np.array(times)
    width = 2 * half + 1
    means = np.eye(width) if implicit else np.eye(width)[:, half : half + 1]
    degrees = np.arange(width + means.shape[1] - 1)[:, None]
    rows = []
    for frame in frames:
        span = t[frame + half] - t[frame - half]
        steps = (t[frame - half : frame + half + 1] - t[frame]) / span
        slopes = degrees * steps ** np.maximum(degrees - 1, 0)
        system = np.block([[steps**degrees, -slopes @ means], [np.zeros(width), np.ones(means.shape[1])]])
        solution = np.linalg.solve(system, np.eye(len(system))[-1])
        rows.append((solution[:width] / span, means @ solution[width:]))
    rates, averages = zip(*rows, strict=True)
    return np.array(rates), np.array(averages)
