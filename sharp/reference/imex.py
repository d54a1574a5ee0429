"""Additive Runge-Kutta integration of `y' = f(y) + g(y)` with g stiff: order 3, with adaptive steps.

The method is ARK3(2)4L[2]SA of Kennedy and Carpenter, "Additive Runge-Kutta schemes for
convection-diffusion-reaction equations", Appl. Numer. Math. 44 (2003): explicit in f, L-stable and singly
diagonally implicit in g, with an embedded method of order 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_DIAGONAL = 1767732205903 / 4055673282236
_WEIGHTS = (
    1471266399579 / 7840856788654,
    -4482444167858 / 7529755066697,
    11266239266428 / 11593286722821,
    _DIAGONAL,
)
_EMBEDDED = (
    2756255671327 / 12835298489170,
    -10771552573575 / 22201958757719,
    9247589265047 / 10645013368117,
    2193209047091 / 5459859503100,
)
_EXPLICIT: tuple[tuple[float, ...], ...] = (
    (),
    (1767732205903 / 2027836641118,),
    (5535828885825 / 10492691773637, 788022342437 / 10882634858940),
    (6485989280629 / 16251701735622, -4246266847089 / 9704473918619, 10755448449292 / 10357097424841),
)
_IMPLICIT: tuple[tuple[float, ...], ...] = (
    (),
    (_DIAGONAL,),
    (2746238789719 / 10658868560708, -640167445237 / 6845629431997),
    _WEIGHTS[:-1],
)
_STAGES = len(_WEIGHTS)
# One row a stage: the weights of f and g of all stages before it, in the order f_0, g_0, f_1, g_1, …
_COUPLING = [
    np.array([(e, i) for e, i in zip(explicit, implicit, strict=True)]).ravel()
    for explicit, implicit in zip(_EXPLICIT, _IMPLICIT, strict=True)
]
_STEP = np.repeat(_WEIGHTS, 2)
_ERROR = np.repeat(np.subtract(_WEIGHTS, _EMBEDDED), 2)

# Of the step that the estimated error would allow; and by how much a step may shrink or grow at once.
_SAFETY, _SHRINK, _GROW = 0.9, 0.2, 3.0
# Steps below this share of the whole time mean that no step is small enough.
_SMALLEST = 1e-12


class ImexSystem(Protocol):
    """A right-hand side f + g: f for the explicit and g for the implicit stages."""

    def explicit(self, y: Array) -> Array:
        """Return f(y)."""
        ...

    def implicit(self, y: Array) -> Array:
        """Return g(y)."""
        ...

    def solve(self, y: Array, a: float) -> Array:
        """Return z with z - a g(z) = y."""
        ...

    def largest_step(self, y: Array) -> float:
        """Return the longest step for which the explicit part is stable."""
        ...

    def norm(self, error: Array) -> float:
        """Return the size of an error, relative to that of the solution."""
        ...


def integrate(system: ImexSystem, y: Array, times: Array, tolerance: float) -> Iterator[Array]:
    """Yield the solution at each of the increasing `times`, the first of which is that of `y`.

    `tolerance` bounds the estimated error of a single step in the norm of the system. Raises
    `ArithmeticError` where the step size that this takes vanishes.
    """
    yield y
    dt = 1e-2 * system.largest_step(y)
    for now, end in pairwise(times):
        while now < end:
            dt = min(dt, system.largest_step(y))
            # Two equal steps to an output time rather than a full one and a rest.
            rest = end - now
            used = rest if rest <= dt else min(dt, rest / 2)
            new, error = step(system, y, used)
            size = system.norm(error) / tolerance
            if size <= 1:
                y, now = new, end if used == rest else now + used
            if not size <= 1 or used == dt:
                dt = used * _factor(size)
            if dt < _SMALLEST * (times[-1] - times[0]):
                raise ArithmeticError(f"the step size vanishes at t = {now}")
        yield y


def step(system: ImexSystem, y: Array, dt: float) -> tuple[Array, Array]:
    """Return the solution one step later and the estimate of its error, both shaped as `y`."""
    rates = np.empty((2 * _STAGES, y.size))
    for stage, coupling in enumerate(_COUPLING):
        before = y + dt * (coupling @ rates[: 2 * stage]).reshape(y.shape) if stage else y
        now = system.solve(before, dt * _DIAGONAL) if stage else y
        rates[2 * stage] = system.explicit(now).ravel()
        rates[2 * stage + 1] = ((now - before) / (dt * _DIAGONAL) if stage else system.implicit(y)).ravel()
    return y + dt * (_STEP @ rates).reshape(y.shape), dt * (_ERROR @ rates).reshape(y.shape)


def _factor(size: float) -> float:
    """Return by how much the step changes when the error is `size` times what is allowed."""
    if not np.isfinite(size):
        return _SHRINK
    return float(np.clip(_SAFETY * max(size, 1e-10) ** (-1 / 3), _SHRINK, _GROW))
