"""Solutions and eigenvalues of hard cases that no expression of a specification gives, found without any solver.

A solution is a function of points [m, d] and times [k] with values [fields, k, m].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import ai_zeros, jv, mathieu_b, yv

from sharp.problems import Problem

Array = NDArray[np.float64]
Values = Callable[[Array, Array], Array]
Exact = Values | tuple[float, ...]
"""A solution, or the lowest eigenvalues, ascending."""

_SLOPES = 4001  # states among which a Riemann problem with a flux that is not convex looks for its own
_LATEST = 1e-12  # the time before which a Riemann problem shows its initial state


def _self_similar(problem: Problem, origin: float, states: Callable[[Array], Array]) -> Values:
    """Return the solution of a Riemann problem from its states [fields, …] at speeds x/t from the place of the jump."""
    begin = problem.time[0] if problem.time else 0.0

    def values(points: Array, times: Array) -> Array:
        passed = np.maximum(times - begin, _LATEST)[:, None]
        return states((points[None, :, 0] - origin) / passed)

    return values


def _burgers(problem: Problem) -> Values:
    """Return the fan of u_t + (u^2/2)_x = 0 from ul to a larger ur, or its shock."""
    left, right = problem.parameters["ul"], problem.parameters["ur"]
    if left > right:
        return _self_similar(problem, 0.0, lambda s: np.where(s < (left + right) / 2, left, right)[None])
    return _self_similar(problem, 0.0, lambda s: np.clip(s, left, right)[None])


def _queue(problem: Problem) -> Values:
    """Return the shock of Lighthill and Whitham's traffic between free cars and a queue (Proc. R. Soc. A 229, 1955)."""
    free, most = problem.parameters["free"], problem.parameters["most"]
    speed = problem.parameters["vmax"] * (1 - (free + most) / most)
    return _self_similar(problem, 0.0, lambda s: np.where(s < speed, free, most)[None])


def _buckley_leverett(problem: Problem) -> Values:
    """Return the entropy solution from 1 to 0: at each speed s the state that maximises f - s times it.

    S. Osher, SIAM J. Numer. Anal. 21 (1984), 217-235.
    """
    state = np.linspace(0.0, 1.0, _SLOPES)
    flux = state**2 / (state**2 + problem.parameters["ratio"] * (1 - state) ** 2)

    def state_at(speeds: Array) -> Array:
        return np.asarray(state[np.argmax(flux - speeds[:, None] * state, axis=1)])

    def states(speeds: Array) -> Array:
        parts = np.array_split(speeds.ravel(), 1 + speeds.size // 1000)
        return np.concatenate([state_at(part) for part in parts]).reshape(1, *speeds.shape)

    return _self_similar(problem, 0.1, states)


def _shallow(problem: Problem) -> Values:
    """Return depth and discharge after a dam breaks over wet ground (J. J. Stoker, Water Waves, 1957, section 10.8)."""
    g, deep, low = (problem.parameters[name] for name in ("g", "deep", "low"))

    def excess(h: float) -> float:
        return 2 * (sqrt(g * deep) - sqrt(g * h)) - (h - low) * sqrt(g / 2 * (1 / h + 1 / low))

    middle = brentq(excess, low, deep, xtol=1e-14)
    speed = 2 * (sqrt(g * deep) - sqrt(g * middle))
    shock = middle * speed / (middle - low)

    def states(s: Array) -> Array:
        fan = (2 * sqrt(g * deep) - s) ** 2 / (9 * g)
        inside, after = s > -sqrt(g * deep), s > speed - sqrt(g * middle)
        h = np.where(s > shock, low, np.where(after, middle, np.where(inside, fan, deep)))
        v = np.where(
            s > shock, 0.0, np.where(after, speed, np.where(inside, 2 / 3 * (s + sqrt(g * deep)), 0.0))
        )
        return np.stack([h, h * v])

    return _self_similar(problem, 0.0, states)


def _euler(problem: Problem) -> Values:
    """Return density, momentum and energy of a Riemann problem of an ideal gas.

    E. F. Toro, Riemann Solvers and Numerical Methods for Fluid Dynamics, third edition, chapter 4.
    """
    g = problem.parameters["g"]
    (rl, vl, pl), (rr, vr, pr) = ([problem.parameters[f"{name}{side}"] for name in "rvp"] for side in "lr")
    cl, cr = sqrt(g * pl / rl), sqrt(g * pr / rr)

    def wave(p: float, r: float, p0: float, c: float) -> float:
        if p > p0:
            return (p - p0) * sqrt(2 / ((g + 1) * r) / (p + (g - 1) / (g + 1) * p0))
        return float(2 * c / (g - 1) * ((p / p0) ** ((g - 1) / (2 * g)) - 1))

    def mismatch(p: float) -> float:
        return wave(p, rl, pl, cl) + wave(p, rr, pr, cr) + vr - vl

    pressure = brentq(mismatch, 1e-12, 100 * max(pl, pr), xtol=1e-15)
    contact = (vl + vr + wave(pressure, rr, pr, cr) - wave(pressure, rl, pl, cl)) / 2

    def beyond(s: Array, own: tuple[float, float, float], c: float, star: float) -> Array:
        """The states beyond the contact (of velocity `star`) on the right; the left is its mirror image."""
        (r, v, p), ratio, k = own, pressure / own[2], (g - 1) / (g + 1)
        if ratio > 1:
            front = v + c * sqrt((g + 1) / (2 * g) * ratio + (g - 1) / (2 * g))
            behind = (r * (ratio + k) / (k * ratio + 1), star, pressure)
            return np.stack([np.where(s > front, a, b) for a, b in zip(own, behind, strict=True)])
        behind = (r * ratio ** (1 / g), star, pressure)
        sound = np.maximum(2 / (g + 1) - k / c * (v - s), 0.0)
        fan = (
            r * sound ** (2 / (g - 1)),
            2 / (g + 1) * ((g - 1) / 2 * v - c + s),
            p * sound ** (2 * g / (g - 1)),
        )
        tail = star + c * ratio ** ((g - 1) / (2 * g))
        return np.stack(
            [
                np.where(s > v + c, a, np.where(s < tail, b, f))
                for a, b, f in zip(own, behind, fan, strict=True)
            ]
        )

    def states(s: Array) -> Array:
        left = beyond(-s, (rl, -vl, pl), cl, -contact) * np.array([1.0, -1.0, 1.0])[:, None, None]
        r, v, p = np.where(s > contact, beyond(s, (rr, vr, pr), cr, contact), left)
        return np.stack([r, r * v, p / (g - 1) + r * v**2 / 2])

    return _self_similar(problem, 0.0, states)


def _barenblatt(problem: Problem) -> Values:
    """Return Barenblatt's solution of h_t = (h^m)_xx (J. L. Vazquez, The Porous Medium Equation, 2007, section 4.4)."""
    m, k, c = (problem.parameters[name] for name in ("m", "k", "c"))

    def values(points: Array, times: Array) -> Array:
        t = times[:, None]
        return (t**-k * np.maximum(0.0, 1 - c * points[None, :, 0] ** 2 * t ** (-2 * k)) ** (1 / (m - 1)))[
            None
        ]

    return values


def _lowest(problem: Problem, found: list[float]) -> tuple[float, ...]:
    wanted = problem.specification.eigenvalue
    assert wanted is not None, "an eigenvalue problem"
    return tuple(sorted(found)[: wanted.count])


def _mathieu(problem: Problem) -> tuple[float, ...]:
    """Return the characteristic values b_n(q): solutions that vanish at 0 and pi."""
    return _lowest(problem, [float(mathieu_b(n, problem.parameters["q"])) for n in range(1, 9)])


def _airy(problem: Problem) -> tuple[float, ...]:
    """Return the levels over a floor, -a_n g^(2/3) with the zeros a_n of Ai; a lid far above changes nothing."""
    scale = problem.parameters["g"] ** (2 / 3)
    return _lowest(problem, [float(-zero * scale) for zero in ai_zeros(8)[0]])


def _box_tones(problem: Problem) -> tuple[float, ...]:
    sides = [problem.parameters[name] for name in "abc"]
    counts = np.stack(np.meshgrid(*[range(1, 9)] * 3), axis=-1).reshape(-1, 3)
    return _lowest(
        problem, [float(sum((pi * n / a) ** 2 for n, a in zip(each, sides, strict=True))) for each in counts]
    )


def _ring_tones(problem: Problem) -> tuple[float, ...]:
    """Return squares of zeros k of J_n(ka) Y_n(kb) - J_n(kb) Y_n(ka); each with n > 0 counts twice."""
    a, b = problem.parameters["a"], problem.parameters["b"]
    found: list[float] = []
    for n in range(12):

        def cross(k: float, n: int = n) -> float:
            return float(jv(n, k * a) * yv(n, k * b) - jv(n, k * b) * yv(n, k * a))

        ends = np.linspace(0.5, 6 * pi / (b - a), 600)
        signs = np.sign([cross(k) for k in ends])
        for j in np.flatnonzero(signs[1:] != signs[:-1]):
            zero = brentq(cross, ends[j], ends[j + 1], xtol=1e-14)
            found += [zero**2] * (1 if n == 0 else 2)
    return _lowest(problem, found)


def _sector_tones(problem: Problem) -> tuple[float, ...]:
    """Return squares of zeros of J_nu with nu = n pi/angle."""
    found: list[float] = []
    for n in range(1, 7):
        order = n * pi / problem.parameters["al"]
        ends = np.linspace(order + 0.1, order + 20, 400)
        signs = np.sign(jv(order, ends))
        zeros = (
            brentq(lambda k, v=order: jv(v, k), ends[j], ends[j + 1], xtol=1e-14)
            for j in np.flatnonzero(signs[1:] != signs[:-1])
        )
        found += [zero**2 for zero in zeros]
    return _lowest(problem, found)


def _clamped_beam(problem: Problem) -> tuple[float, ...]:
    """Return EI k^4 with the roots of cosh k cos k = 1."""
    roots = [
        brentq(lambda k: np.cos(k) - 1 / np.cosh(k), (n + 0.4) * pi, (n + 0.6) * pi, xtol=1e-14)
        for n in range(1, 7)
    ]
    return _lowest(problem, [problem.parameters["EI"] * root**4 for root in roots])


SOLUTIONS: Mapping[str, Callable[[Problem], Exact]] = {
    "burgers": _burgers,
    "queue": _queue,
    "buckley-leverett": _buckley_leverett,
    "shallow": _shallow,
    "euler": _euler,
    "barenblatt": _barenblatt,
    "mathieu": _mathieu,
    "airy": _airy,
    "box-tones": _box_tones,
    "ring-tones": _ring_tones,
    "sector-tones": _sector_tones,
    "clamped-beam": _clamped_beam,
}
