"""The exact solution of Riemann's problem for an ideal gas (E. F. Toro, Riemann Solvers, 2009, ch. 4)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq

from sharp.solvers.grid import Array

GAMMA = 1.4

State = tuple[float, float, float]


def gas_riemann(left: State, right: State, speeds: Array) -> Array:
    """Return density, momentum and energy [3, n] along rays x/t [n] for two states (density, velocity, pressure)."""
    pressure = brentq(
        lambda p: _change(p, left) + _change(p, right) + right[1] - left[1], 1e-12, 1e6, xtol=1e-15
    )
    velocity = (left[1] + right[1] + _change(pressure, right) - _change(pressure, left)) / 2
    mirrored = (right[0], -right[1], right[2])
    inside = speeds < velocity
    found = np.where(
        inside, _side(left, pressure, velocity, speeds), _side(mirrored, pressure, -velocity, -speeds)
    )
    density, v, p = found[0], np.where(inside, found[1], -found[1]), found[2]
    return np.stack([density, density * v, p / (GAMMA - 1) + density * v**2 / 2])


def _sound(state: State) -> float:
    return float(np.sqrt(GAMMA * state[2] / state[0]))


def _change(pressure: float, state: State) -> float:
    """Return the change of velocity across the wave next to a state, for the pressure behind it."""
    density, _, p = state
    if pressure > p:
        a, b = 2 / ((GAMMA + 1) * density), (GAMMA - 1) / (GAMMA + 1) * p
        return float((pressure - p) * np.sqrt(a / (pressure + b)))
    power = (GAMMA - 1) / (2 * GAMMA)
    return 2 * _sound(state) / (GAMMA - 1) * ((pressure / p) ** power - 1)


def _side(state: State, pressure: float, velocity: float, speeds: Array) -> Array:
    """Return density, velocity and pressure [3, n] on the left of the contact."""
    density, v, p = state
    c, ratio = _sound(state), pressure / p
    if pressure > p:
        share = (GAMMA - 1) / (GAMMA + 1)
        behind = density * (ratio + share) / (share * ratio + 1)
        shock = v - c * np.sqrt((GAMMA + 1) / (2 * GAMMA) * ratio + (GAMMA - 1) / (2 * GAMMA))
        pairs = zip(state, (behind, velocity, pressure), strict=True)
        return np.stack([np.where(speeds < shock, before, after) for before, after in pairs])
    behind = density * ratio ** (1 / GAMMA)
    tail = velocity - c * ratio ** ((GAMMA - 1) / (2 * GAMMA))
    fan = 2 / (GAMMA + 1) + (GAMMA - 1) / ((GAMMA + 1) * c) * (v - speeds)
    fan = np.maximum(fan, 1e-12)
    within = (
        density * fan ** (2 / (GAMMA - 1)),
        2 / (GAMMA + 1) * (c + (GAMMA - 1) / 2 * v + speeds),
        p * fan ** (2 * GAMMA / (GAMMA - 1)),
    )
    return np.stack(
        [
            np.where(speeds < v - c, before, np.where(speeds > tail, after, middle))
            for before, after, middle in zip(state, (behind, velocity, pressure), within, strict=True)
        ]
    )
