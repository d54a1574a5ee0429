"""Steps in time of a system taken mode by mode, as long as a tolerance allows, and the state between them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from sharp.solvers.fourier_modes import Complex
from sharp.solvers.grid import Array
from sharp.solvers.method import NEVER, Deadline, SolverFailed
from sharp.solvers.modal_system import ModalSystem, tail

# A solution whose last modes hold more than this share of it is not resolved.
_UNRESOLVED = 0.005
_SAFETY = 0.8
_SHRINK = (0.1, 0.8)
# Steps are made longer only by this factor or more, as that means new operators.
_GROWTH = (1.25, 4.0)
_SHORTEST = 1e-10
_INSET = 1e-12
# States are kept up to so many numbers; beyond, every other one is left out and found again when it is asked for.
_KEPT = 12_000_000
# As many numbers of states between steps are remembered.
_REMEMBERED = 8_000_000


@dataclass(frozen=True)
class Step:
    """Two steps of equal length; `segment` counts the intervals between jumps of the data."""

    start: float
    length: float
    segment: int

    @property
    def end(self) -> float:
        """The time after both."""
        return self.start + 2 * self.length


class ModalSteps(ABC):
    """Advances coefficients [c, ...] by pairs of steps whose estimated error keeps a tolerance.

    `order` is that of the estimate: halving a step divides it by two to the power of that.
    """

    order: int

    def __init__(self, discrete: ModalSystem, tolerance: float, deadline: Deadline) -> None:
        self.discrete = discrete
        self._tolerance = tolerance
        self._deadline = deadline
        self._sizes: Array = np.zeros(1)

    @abstractmethod
    def pair(self, step: Step, state: Complex) -> tuple[Complex, Complex]:
        """Return the state after a pair of steps, and an estimate of its error."""

    @abstractmethod
    def between(self, computed: ModalTrajectory, index: int, after: float) -> Complex:
        """Return the state at a time after the start of the pair of steps of some number, within it."""

    def over(self, interval: tuple[float, float], breaks: tuple[float, ...]) -> ModalTrajectory:
        """Advance the initial state through an interval; steps end at `breaks`.

        Raises `SolverFailed` and `TimeLimitExceeded`.
        """
        state = self.discrete.start()
        self._sizes = self.discrete.modes.norms(state)
        computed = ModalTrajectory(self, state)
        ends = [moment for moment in sorted(breaks) if interval[0] < moment < interval[1]]
        time, length = interval[0], 0.0
        for segment, end in enumerate((*ends, interval[1])):
            length = length or self._first(time, end, state)
            shortest = _SHORTEST * (interval[1] - interval[0])
            while time < end:
                step, state, length = self._accepted(
                    Step(time, _equal(end - time, length), segment), end, state, shortest
                )
                computed.add(step, state)
                time = end if end - step.end < 1e-9 * step.length else step.end
        # States that are found again when they are asked for are no part of the solving.
        self._deadline = NEVER
        return computed

    def rest(self, step: Step, after: float, state: Complex) -> Complex:
        """Return the rates at a time of a step; at its ends those of its inside, as data may jump there."""
        self._deadline.check()
        inset = _INSET * step.length
        return self.discrete.rest(step.start + min(max(after, inset), 2 * step.length - inset), state)

    def _first(self, start: float, end: float, state: Complex) -> float:
        rates = self.discrete.modes.norms(self.discrete.rest(start + _INSET * (end - start), state))
        sizes = self._sizes
        moving = np.isfinite(rates) & (rates > 0) & (sizes > 1e-6 * float(sizes.max(initial=0.0)))
        share = self._tolerance ** (1 / self.order)
        return float(np.min(share * sizes[moving] / rates[moving], initial=(end - start) / 8))

    def _accepted(
        self, step: Step, end: float, state: Complex, shortest: float
    ) -> tuple[Step, Complex, float]:
        """Return the next step, the state after it, and the length to try after it."""
        while step.length > shortest:
            after, change = self.pair(step, state)
            sizes = np.maximum(self._sizes, self.discrete.modes.norms(after))
            error = self._relative(change, sizes)
            factor = _SAFETY * (self._tolerance / max(error, 1e-300)) ** (1 / self.order)
            if error <= self._tolerance:
                self._sizes = sizes
                growth = min(factor, _GROWTH[1])
                return step, after, step.length * (growth if growth > _GROWTH[0] else 1.0)
            length = step.length * (float(np.clip(factor, *_SHRINK)) if np.isfinite(error) else _SHRINK[0])
            step = Step(step.start, _equal(end - step.start, length), step.segment)
        largest = float(np.abs(self.discrete.modes.values(state)).max())
        raise SolverFailed(
            f"the solution could not be followed beyond the time {step.start:.6g}, where its largest value is "
            f"{largest:.3g} and steps fell to {step.length:.1e}",
            step.start,
        )

    def _relative(self, change: Complex, sizes: Array) -> float:
        least = max(1e-6 * float(sizes.max(initial=0.0)), 1e-300)
        found = float(np.max(self.discrete.modes.norms(change) / np.maximum(sizes, least)))
        return found if np.isfinite(found) else np.inf


def _equal(left: float, length: float) -> float:
    """Return the length of equal pairs of steps up to the end."""
    return float(left / 2 / np.ceil(left / (2 * length) * (1 - 1e-9)))


@dataclass
class ModalTrajectory:
    """The states after every pair of steps, or after some of them: the others are found again when asked for."""

    steps_of: ModalSteps
    first: Complex
    steps: list[Step] = field(default_factory=list)
    tail: float = 0.0
    _kept: dict[int, Complex] = field(default_factory=dict)
    _every: int = 1
    _found: OrderedDict[Any, Complex] = field(default_factory=OrderedDict)

    def add(self, step: Step, state: Complex) -> None:
        """Note a pair of steps and the state after it; raises `SolverFailed` where its last modes are too large."""
        self.steps.append(step)
        if len(self.steps) % self._every == 0:
            self._kept[len(self.steps)] = state
        if len(self._kept) * state.size > _KEPT:
            self._every *= 2
            self._kept = {index: kept for index, kept in self._kept.items() if index % self._every == 0}
        self.tail = max(self.tail, tail(self.steps_of.discrete.modes, state))
        if self.tail > _UNRESOLVED and len(self.steps) > 1:
            raise SolverFailed(
                f"so many modes do not resolve the solution at the time {step.end:.4g}: "
                f"the last ones hold {self.tail:.1e} of it"
            )

    def fields(self, time: float) -> Complex:
        """Return the coefficients of all components at a time."""
        return self._remembered(time, lambda: self.steps_of.discrete.fields(time, self._state(time)))

    def rate(self, count: int, last: bool) -> Complex:
        """Return the rates after so many pairs of steps: of the next one, or of the `last` one."""
        step = self.steps[count - 1] if last else self.steps[count]
        inset = _INSET * step.length
        time = step.end - inset if last else step.start + inset
        return self._remembered((count, last), partial(self._rate, count, time))

    def after(self, count: int) -> Complex:
        """Return the state after so many pairs of steps."""
        known = count - count % self._every
        while known > 0 and known not in self._kept:
            known -= self._every
        state = self._kept[known] if known > 0 else self.first
        for index in range(known, count):
            state = self.steps_of.pair(self.steps[index], state)[0]
        return state

    def _remembered(self, key: Any, make: Any) -> Complex:
        if key not in self._found:
            self._found[key] = make()
            if len(self._found) * self._found[key].size > _REMEMBERED:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return self._found[key]

    def _state(self, time: float) -> Complex:
        starts = np.array([step.start for step in self.steps])
        index = int(np.clip(np.searchsorted(starts, time, side="right") - 1, 0, len(starts) - 1))
        elapsed = time - self.steps[index].start
        return self.after(index) if elapsed <= 0 else self.steps_of.between(self, index, elapsed)

    def _rate(self, count: int, time: float) -> Complex:
        return self.steps_of.discrete.rest(time, self.after(count))
