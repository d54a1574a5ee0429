"""Method `etd`: Fourier modes on periodic boxes, with steps in time that are exact for the linear part.

The exponential and phi functions of the linear part are known mode by mode (`phi_functions`). Steps are those of
S. Krogstad's exponential Runge-Kutta method of order 4 (ETDRK4-B, J. Comput. Phys. 203, 2005; after S. M. Cox and
P. C. Matthews, J. Comput. Phys. 176, 2002, and A.-K. Kassam and L. N. Trefethen, SIAM J. Sci. Comput. 26, 2005). Two
of them are compared with one of twice the length, which gives the error and one more order.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import factorial

import numpy as np

from sharp.solvers.fourier_modes import Complex, FourierModes
from sharp.solvers.method import Deadline
from sharp.solvers.modal_method import ModalMethod
from sharp.solvers.modal_stepping import ModalSteps, ModalTrajectory, Step
from sharp.solvers.modal_system import ModalSystem
from sharp.solvers.phi_functions import LinearOperator

# Rates between steps are those of the polynomial through so many steps.
_NEAREST = 6


@dataclass(frozen=True)
class _Phis:
    """What one step of a length multiplies: exponentials and combinations of phi functions."""

    length: float
    half: LinearOperator
    whole: LinearOperator
    first: tuple[LinearOperator, ...]

    @classmethod
    def of(cls, length: float, half: list[LinearOperator], whole: list[LinearOperator]) -> _Phis:
        """Combine phi_0, …, phi_3 of half of the length and of the whole."""

        def sums(*terms: tuple[float, LinearOperator]) -> LinearOperator:
            total = sum(
                (factor * each.values for factor, each in terms[1:]), terms[0][0] * terms[0][1].values
            )
            return LinearOperator(length * total, whole[0].diagonal)

        p, q = half, whole
        return cls(
            length,
            p[0],
            q[0],
            (
                sums((0.5, p[1])),
                sums((0.5, p[1]), (-1, p[2])),
                sums((1, p[2])),
                sums((1, q[1]), (-2, q[2])),
                sums((2, q[2])),
                sums((1, q[1]), (-3, q[2]), (4, q[3])),
                sums((2, q[2]), (-4, q[3])),
                sums((-1, q[2]), (4, q[3])),
            ),
        )


class _ExponentialSteps(ModalSteps):
    """The error that is compared with the tolerance is that of order 4, and the solution is of order 5."""

    order = 5

    def __init__(self, discrete: ModalSystem, tolerance: float, deadline: Deadline) -> None:
        super().__init__(discrete, tolerance, deadline)
        self._phis: tuple[float, _Phis, _Phis] | None = None

    def phis(self, length: float) -> tuple[_Phis, _Phis]:
        """Return what steps of a length and of twice the length multiply."""
        if self._phis is None or self._phis[0] != length:
            half, whole, twice = self.discrete.operator.phis((length / 2, length, 2 * length), 3)
            self._phis = length, _Phis.of(length, half, whole), _Phis.of(2 * length, whole, twice)
        return self._phis[1:]

    def pair(self, step: Step, state: Complex) -> tuple[Complex, Complex]:
        """Return the state after two steps, less the error that one of twice the length shows, and that error."""
        short, long = self.phis(step.length)
        rate = self.rest(step, 0.0, state)
        middle = self._advanced(short, step, 0.0, state, rate)
        fine = self._advanced(short, step, step.length, middle, self.rest(step, step.length, middle))
        coarse = self._advanced(long, step, 0.0, state, rate)
        error = (fine - coarse) / 15
        return fine + error, error

    def _advanced(self, phis: _Phis, step: Step, after: float, state: Complex, rate: Complex) -> Complex:
        h = phis.length
        a1, b1, b2, c1, c2, u1, u2, u3 = phis.first
        halfway = phis.half.apply(state)
        a = halfway + a1.apply(rate)
        rate_a = self.rest(step, after + h / 2, a)
        b = halfway + b1.apply(rate) + b2.apply(rate_a)
        rate_b = self.rest(step, after + h / 2, b)
        whole = phis.whole.apply(state)
        c = whole + c1.apply(rate) + c2.apply(rate_b)
        rate_c = self.rest(step, after + h, c)
        return whole + u1.apply(rate) + u2.apply(rate_a + rate_b) + u3.apply(rate_c)

    def between(self, computed: ModalTrajectory, index: int, after: float) -> Complex:
        """Return the state within a step: exact for the linear part, with a polynomial in time for the rest."""
        step = computed.steps[index]
        nodes = list(_nodes(computed, index))
        times = np.array([moment for moment, _ in nodes]) - step.start
        scale = 2 * step.length
        weights = np.linalg.inv(np.vander(times / scale, increasing=True))
        (phis,) = self.discrete.operator.phis((after,), len(nodes))
        found = phis[0].apply(computed.after(index))
        for power, row in enumerate(weights):
            share = (after / scale) ** power * after * factorial(power)
            rate = sum(share * weight * rate for weight, (_, rate) in zip(row.tolist(), nodes, strict=True))
            found = found + phis[power + 1].apply(np.asarray(rate))
        return found


def _nodes(computed: ModalTrajectory, index: int) -> Iterator[tuple[float, Complex]]:
    """Yield times and rates at the ends of steps about one, none beyond a jump of the data."""
    steps = computed.steps
    own = steps[index].segment
    inside = [i for i, step in enumerate(steps) if step.segment == own]
    first = min(max(index - _NEAREST // 2 + 1, inside[0]), max(inside[-1] + 2 - _NEAREST, inside[0]))
    for place in range(first, min(first + _NEAREST, inside[-1] + 2)):
        last = place > inside[-1]
        yield steps[place - 1].end if last else steps[place].start, computed.rate(place, last)


class ExponentialFourier(ModalMethod):
    """Fourier modes and exponential integrators."""

    name = "etd"
    modes = FourierModes
    steps = _ExponentialSteps
