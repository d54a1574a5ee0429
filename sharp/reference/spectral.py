"""Fourier series on a period, and self-converged solutions of quadratic semilinear equations by ETDRK4.

Coefficients are those of `numpy.fft.rfft(..., norm="forward")`: v[k] of exp(2 pi i k (x - x_0) / L), where
x_0 is the first data point, so that every refined grid contains the data points.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError

Real = NDArray[np.float64]
Complex = NDArray[np.complex128]

# Time steps between two output times: more are given up.
MOST_STEPS = 2**20
# Points on the contours that the weights of ETDRK4 are means over; their formulas cancel near 0.
_CONTOUR_POINTS = 32


def wave_numbers(modes: int, length: float) -> Real:
    """Return 2 pi k / L for k = 0, …, modes - 1."""
    return np.asarray(2 * np.pi / length * np.arange(modes))


def coefficients(values: Real, modes: int) -> Complex:
    """Return the first `modes` coefficients of the trigonometric interpolant of values [..., N]."""
    n = values.shape[-1]
    spectrum = np.fft.rfft(values, norm="forward")
    if n % 2 == 0:
        spectrum[..., -1] *= 0.5  # the Nyquist mode belongs to +N/2 and -N/2 alike
    spectrum = spectrum[..., :modes]
    return np.pad(spectrum, [(0, 0)] * (values.ndim - 1) + [(0, modes - spectrum.shape[-1])])


def evaluate(spectrum: Complex, points: int) -> Real:
    """Evaluate coefficients [..., K] at equidistant points, also at fewer than would resolve them."""
    modes = spectrum.shape[-1]
    stride = -(-2 * modes // points)
    return np.fft.irfft(spectrum, stride * points, norm="forward")[..., ::stride]


def relative_l2(values: Real, reference: Real) -> Real:
    """Return ||values - reference|| / ||reference|| of each sample; undivided where the reference is 0."""
    axes = tuple(range(1, reference.ndim))
    scale = np.sum(reference**2, axes)
    return np.asarray(np.sqrt(np.sum((values - reference) ** 2, axes) / np.where(scale > 0, scale, 1.0)))


@dataclass(frozen=True)
class QuadraticPde:
    """The equation u_t = L u + M (u^2) with operators that are diagonal in Fourier space.

    `linear` and `square` give the real symbol of L and the symbol of M for wave numbers [K].
    """

    linear: Callable[[Real], Real]
    square: Callable[[Real], NDArray[np.complexfloating]]
    length: float


class Etdrk4:
    """Exponential time differencing, fourth order (Cox and Matthews 2002; Kassam and Trefethen 2005).

    The linear part is exact; the square is formed on 3K points, free of aliasing (3/2 rule).
    """

    def __init__(self, equation: QuadraticPde, modes: int, dt: float) -> None:
        waves = wave_numbers(modes, equation.length)
        z = dt * equation.linear(waves)
        self._points = 3 * modes
        self._square = equation.square(waves)
        self._full, self._half = np.exp(z), np.exp(z / 2)
        circle = z[:, None] + np.exp(1j * np.pi * (np.arange(_CONTOUR_POINTS) + 0.5) / _CONTOUR_POINTS)

        def mean(values: Complex) -> Real:
            return np.asarray(dt * values.mean(axis=1).real)

        e = np.exp(circle)
        self._stage = mean((np.exp(circle / 2) - 1) / circle)
        self._first = mean((-4 - circle + e * (4 - 3 * circle + circle**2)) / circle**3)
        self._middle = 2 * mean((2 + circle + e * (circle - 2)) / circle**3)
        self._last = mean((-4 - 3 * circle - circle**2 + e * (4 - circle)) / circle**3)

    def _nonlinear(self, v: Complex) -> Complex:
        u = np.fft.irfft(v, self._points, norm="forward")
        return np.asarray(self._square * np.fft.rfft(u * u, norm="forward")[..., : v.shape[-1]])

    def step(self, v: Complex) -> Complex:
        """Advance coefficients [n, K] by one step."""
        n_v = self._nonlinear(v)
        a = self._half * v + self._stage * n_v
        n_a = self._nonlinear(a)
        n_b = self._nonlinear(self._half * v + self._stage * n_a)
        n_c = self._nonlinear(self._half * a + self._stage * (2 * n_b - n_v))
        return self._full * v + self._first * n_v + self._middle * (n_a + n_b) + self._last * n_c


def integrate_to_tolerance(
    equation: QuadraticPde, v: Complex, t: Real, tolerance: float
) -> Iterator[Complex]:
    """Yield the coefficients at each time; steps are halved until that changes them by less than `tolerance`.

    The change is relative, in the L2 norm, of the sample where it is largest.
    """
    yield v
    steps = 1
    for duration in np.diff(t):
        with np.errstate(over="ignore", invalid="ignore"):  # too few steps are unstable
            v, steps = _settle(equation, v, duration, steps, tolerance)
        yield v


def _settle(
    equation: QuadraticPde, v: Complex, duration: float, steps: int, tolerance: float
) -> tuple[Complex, int]:
    """Double the steps until that changes little; return the solution and the steps to begin with next."""
    coarse = _advance(equation, v, duration, steps)
    while steps <= MOST_STEPS:
        fine = _advance(equation, v, duration, 2 * steps)
        change = _change(fine, coarse)
        if change <= tolerance:
            spare = change < tolerance / 32 and steps > 1  # half the steps change 16 times more
            return fine, steps // 2 if spare else steps
        steps, coarse = 2 * steps, fine
    raise DataError(f"no solution found: {MOST_STEPS} time steps in {duration:.3g} do not suffice")


def _advance(equation: QuadraticPde, v: Complex, duration: float, steps: int) -> Complex:
    scheme = Etdrk4(equation, v.shape[-1], duration / steps)
    for _ in range(steps):
        v = scheme.step(v)
    return v


def _change(fine: Complex, coarse: Complex) -> float:
    scale = np.linalg.norm(fine, axis=-1)
    difference = np.linalg.norm(fine - coarse, axis=-1)
    return float(np.max(difference / np.where(scale > 0, scale, 1.0)))


def solve(equation: QuadraticPde, spectrum: Complex, points: int, t: Real, tolerance: float) -> Real:
    """Solve from coefficients [n, K] and evaluate at all times: [n, T, points]."""
    return np.stack(
        [evaluate(v, points) for v in integrate_to_tolerance(equation, spectrum, t, tolerance)], axis=1
    )


def solve_self_converged(
    equation: QuadraticPde, spectrum: Complex, points: int, t: Real, tolerance: float
) -> tuple[Real, Real]:
    """Solve with the first K/4, K/2 and K modes and ever smaller steps until two solutions agree.

    Returns [n, T, points] and, for each sample, the relative L2 difference of the last two solutions after
    the first time: a bound on the error of the coarser one.
    """
    modes = spectrum.shape[-1]
    coarse = solve(equation, spectrum[..., : modes // 4], points, t, 4 * tolerance)
    for refinement in (2, 1):
        fine = solve(equation, spectrum[..., : modes // refinement], points, t, refinement / 2 * tolerance)
        error = relative_l2(fine[:, 1:], coarse[:, 1:])
        if error.max() <= tolerance:
            break
        coarse = fine
    return fine, error
