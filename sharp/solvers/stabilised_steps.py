"""Explicit steps whose many stages make diffusion stable: Runge-Kutta-Legendre methods of order 1 and 2.

With s stages a step may be about s²/2 (order 1) or s²/4 (order 2) times as long as one of Euler's, and what diffuses
makes no new extrema (C. D. Meyer, D. S. Balsara and T. D. Aslam, J. Comput. Phys. 257, 2014, eqs. 6 to 19).
"""

from __future__ import annotations

from collections.abc import Callable

from sharp.solvers.grid import Array

Rates = Callable[[Array, float], Array]

# What is kept of the longest stable step.
_SAFETY = 0.9


def stabilised_length(order: int, stages: int) -> float:
    """Return how many times longer than one of Euler's method a step may be."""
    count = stages**2 + stages
    return _SAFETY * (count / 2 if order == 1 else (count - 2) / 4)


def stabilised_step(order: int, rates: Rates, state: Array, time: float, step: float, stages: int) -> Array:
    """Return the state after a step of a method of order 1 or 2 with an odd number of stages, at least 3."""
    count = stages**2 + stages
    weight = 2 / count if order == 1 else 4 / (count - 2)
    b = [1.0 if order == 1 or j < 3 else 3 * (j * j + j - 2) / (2 * j * (j + 1)) for j in range(stages + 1)]
    begun = rates(state, time)
    before, now = state, state + weight * step * (begun if order == 1 else begun / 3)
    for j in range(2, stages + 1):
        grown, kept = (2 * j - 1) / j * b[j] / b[j - 1], (1 - j) / j * b[j] / b[j - 2]
        passed = (j * j - j if order == 1 else (j * j - j - 2 if j > 2 else 1.0)) / (count - 2 * (order - 1))
        change = rates(now, time + passed * step)
        if order == 2:
            change = change - (1 - b[j - 1] / 3) * begun
        before, now = (
            now,
            grown * now + kept * before + (1 - grown - kept) * state + grown * weight * step * change,
        )
    return now
