"""Methods `fv` and `muscl`: finite volumes for systems of conservation laws on boxes, for jumps and thin layers.

`fv` has WENO reconstruction, the fluxes of Harten, Lax and van Leer and three Runge-Kutta stages, `muscl` limited
lines, Lax and Friedrichs' fluxes and two stages: they agree where both are right (R. J. LeVeque, Finite Volume Methods
for Hyperbolic Problems, 2002; C.-W. Shu, ICASE Report 97-65, 1997). On smooth solutions the errors of the time steps of
`fv` are of order 3; those of sources and, for fluxes that are not linear in more than one dimension, of faces are of
order 2, as both are taken at midpoints.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from sharp.problems import BoxDomain
from sharp.solvers.conservation import conservation_law_of
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.finite_volume_scheme import MUSCL, WENO, FiniteVolumeScheme, SchemeKind, Sides
from sharp.solvers.grid import Array
from sharp.solvers.method import Deadline
from sharp.solvers.system import SINGULAR_AXIS, FirstOrderSystem, UnsupportedProblem, symmetry_axis

# The bytes that kept states, and their rates of change, may take.
_KEPT = 2**29
_RESOLUTIONS = {1: (100, 200, 400, 800, 1600), 2: (25, 50, 100, 200, 400), 3: (16, 32, 64)}


@dataclass(frozen=True)
class _Method:
    """Finite volumes of equal cells; `resolution` is their number along each axis."""

    name: str
    kind: SchemeKind

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return what stands in the way: another domain than a box, no balance."""
        if not isinstance(system.problem.domain, BoxDomain):
            return "the domain is no interval, rectangle or box"
        if symmetry_axis(system.problem):
            return SINGULAR_AXIS
        try:
            conservation_law_of(system)
        except UnsupportedProblem as error:
            return str(error)
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of cells along each axis."""
        return _RESOLUTIONS[len(system.space)]

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution; steps in time follow from stability, whatever accuracy is asked for."""
        del accuracy
        scheme = FiniteVolumeScheme(conservation_law_of(system), resolution, self.kind)
        assert system.problem.time is not None
        time, end = system.problem.time
        history = StateHistory(scheme, time, scheme.start())
        state = history.last
        while time < end:
            deadline.check()
            state, time = scheme.step(state, time, end)
            history.append(state, time, last=time >= end)
        return DiscreteSolution(self.name, resolution, history.evaluate, state.size)


class FiniteVolumes(_Method):
    """WENO reconstruction, HLL fluxes, three stages."""

    def __init__(self) -> None:
        super().__init__("fv", WENO)


class LimitedFiniteVolumes(_Method):
    """Limited lines, local Lax-Friedrichs fluxes, two stages."""

    def __init__(self) -> None:
        super().__init__("muscl", MUSCL)


class StateHistory:
    """States at ascending times, and Hermite's cubics between them; of many steps every second, fourth, … is kept."""

    def __init__(self, scheme: FiniteVolumeScheme, time: float, state: Array) -> None:
        self._scheme = scheme
        self._times = [time]
        self._states = [state]
        self._stride = 1
        self._steps = 0
        # As many as the times of one check, which asks for chunks of points in turn.
        self._rate = lru_cache(maxsize=64)(lambda place: self._rates(place))
        self._found = lru_cache(maxsize=32)(lambda time: self._between(time))

    @property
    def last(self) -> Array:
        """The last state that is kept."""
        return self._states[-1]

    def append(self, state: Array, time: float, *, last: bool) -> None:
        """Take a further state; the last one is kept in any case."""
        self._steps += 1
        if self._steps % self._stride == 0 or last:
            self._times.append(time)
            self._states.append(state)
        if 2 * len(self._states) * state.nbytes > _KEPT and not last:
            self._stride *= 2
            self._times, self._states = self._times[::2], self._states[::2]

    def evaluate(self, points: Array, times: Array) -> Array:
        """Return the values [fields, k, m] at points [m, d] and times [k]."""
        found = [self._scheme.values(*self._found(time), points) for time in times.tolist()]
        return np.stack(found, axis=1)

    def _between(self, time: float) -> tuple[Array, Sides]:
        """Return the state at a time, and its values at faces."""
        place = min(max(bisect_right(self._times, time) - 1, 0), len(self._times) - 2)
        start, end = self._times[place : place + 2]
        before, after = self._states[place : place + 2]
        share, length = (time - start) / (end - start), end - start
        if self._scheme.law.potentials:
            # Rates beside a front are those of a step of Euler's, far shorter than these steps.
            state = (1 - share) * before + share * after
            return state, self._scheme.sides(state, time)
        left, right = self._rate(place), self._rate(place + 1)
        state = (
            (1 + 2 * share) * (1 - share) ** 2 * before
            + share**2 * (3 - 2 * share) * after
            + length * share * (1 - share) * ((1 - share) * left - share * right)
        )
        with np.errstate(all="ignore"):
            # What is between two states need not make sense next to a jump; a mean of them does.
            if np.any(self._scheme.wrong(before, state, time)):
                state = (1 - share) * before + share * after
            return state, self._scheme.sides(state, time)

    def _rates(self, place: int) -> Array:
        """Return the rates of change of a kept state."""
        with np.errstate(all="ignore"):
            return self._scheme.rates(self._states[place], self._times[place])
