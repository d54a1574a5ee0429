"""Method `imex`: finite differences of order 8 on periodic boxes, with implicit steps for the linear part alone.

It shares no derivative and no step in time with the other methods on periodic boxes, and is there to be compared with.
Differences on an even periodic grid are factors of Fourier modes too, so that implicit steps need no matrices. Steps
are those of C. A. Kennedy and M. H. Carpenter's additive Runge-Kutta method of order 4 with an embedded one of order 3
(ARK4(3)6L[2]SA, Appl. Numer. Math. 44, 2003).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from sharp.solvers.fd_weights import central_stencil
from sharp.solvers.fourier_modes import Complex, FourierModes
from sharp.solvers.method import Deadline
from sharp.solvers.modal_method import ModalMethod
from sharp.solvers.modal_stepping import ModalSteps, ModalTrajectory, Step
from sharp.solvers.modal_system import ModalSystem
from sharp.solvers.phi_functions import LinearOperator
from sharp.solvers.runge_kutta import DIAGONAL, EMBEDDED, NODES, STAGES, WEIGHTS, hermite

# The explicit stages of the method whose implicit ones are `STAGES`.
_EXPLICIT = np.array([
    [0, 0, 0, 0, 0],
    [1 / 2, 0, 0, 0, 0],
    [13861 / 62500, 6889 / 62500, 0, 0, 0],
    [-116923316275 / 2393684061468, -2731218467317 / 15368042101831, 9408046702089 / 11113171139209, 0, 0],
    [
        -451086348788 / 2902428689909, -2682348792572 / 7519795681897, 12662868775082 / 11960479115383,
        3355817975965 / 11060851509271, 0,
    ],
    [
        647845179188 / 3216320057751, 73281519250 / 8382639484533, 552539513391 / 3454668386233,
        3354512671639 / 8306763924573, 4040 / 17871,
    ],
])  # fmt: skip


class _DifferenceModes(FourierModes):
    """Modes whose derivatives are those of differences on as many nodes, where products are taken as well."""

    @cached_property
    def nodes(self) -> int:
        """The number of nodes along each axis."""
        from scipy.fft import next_fast_len

        return int(next_fast_len(2 * self.highest + 1, real=True))

    def derivative(self, by: tuple[int, ...]) -> Complex:
        """Return the factors [n_1, ..., n_d] of a derivative."""
        found: Any = np.ones((1,) * self.dimension, dtype=complex)
        for number, order, (low, high) in zip(self.numbers, by, self.bounds.values(), strict=True):
            step = (high - low) / self.nodes
            offsets, weights = central_stencil(order)
            found = found * (np.exp(1j * number[..., None] * step * offsets) @ weights) / step**order
        return np.broadcast_to(found, self.shape)


class _ImplicitExplicitSteps(ModalSteps):
    """The error that is compared with the tolerance is that of order 3, and the solution is of order 4."""

    order = 4

    def __init__(self, discrete: ModalSystem, tolerance: float, deadline: Deadline) -> None:
        super().__init__(discrete, tolerance, deadline)
        self._inverse: tuple[float, LinearOperator] | None = None

    def pair(self, step: Step, state: Complex) -> tuple[Complex, Complex]:
        """Return the state after two steps, and the sum of their estimated errors."""
        middle, first = self._advanced(step, 0.0, state)
        end, second = self._advanced(step, step.length, middle)
        return end, first + second

    def between(self, computed: ModalTrajectory, index: int, after: float) -> Complex:
        """Return the state within a step by the cubic polynomial through states and rates at its ends."""
        step, operator = computed.steps[index], self.discrete.operator
        ends = computed.after(index), computed.after(index + 1)
        last = index + 1 == len(computed.steps) or computed.steps[index + 1].segment != step.segment
        rates = computed.rate(index, last=False), computed.rate(index + 1, last)
        slopes = [operator.apply(state) + rate for state, rate in zip(ends, rates, strict=True)]
        return np.asarray(hermite(after / (2 * step.length), 2 * step.length, *ends, *slopes))

    def _advanced(self, step: Step, after: float, state: Complex) -> tuple[Complex, Complex]:
        """Return the state after one step, and an estimate of its error."""
        length, operator, inverse = step.length, self.discrete.operator, self._inverted(step.length)
        stages = state
        stiff: list[Complex] = []
        rests: list[Complex] = []
        for row, (implicit, explicit) in enumerate(zip(STAGES, _EXPLICIT, strict=True)):
            if row:
                known = state + length * (_sum(implicit[:row], stiff) + _sum(explicit[:row], rests))
                stages = inverse.apply(known)
            stiff.append(operator.apply(stages))
            rests.append(self.rest(step, after + NODES[row] * length, stages))
        rates = [a + b for a, b in zip(stiff, rests, strict=True)]
        return state + length * _sum(WEIGHTS, rates), length * _sum(WEIGHTS - EMBEDDED, rates)

    def _inverted(self, length: float) -> LinearOperator:
        """Return the inverse of 1 less the implicit part of a stage."""
        if self._inverse is None or self._inverse[0] != length:
            self._inverse = length, self.discrete.operator.resolvent(DIAGONAL * length)
        return self._inverse[1]


def _sum(factors: Any, parts: list[Complex]) -> Complex:
    found = np.zeros_like(parts[0])
    for factor, part in zip(factors.tolist(), parts, strict=True):
        if factor:
            found += factor * part
    return found


class PeriodicDifferences(ModalMethod):
    """Finite differences on as many nodes as there are modes, and implicit-explicit steps."""

    name = "imex"
    compares_only = True
    modes = _DifferenceModes
    steps = _ImplicitExplicitSteps
