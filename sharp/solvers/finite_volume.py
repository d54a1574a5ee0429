"""Method `fv`: finite volumes for scalar balances on boxes, for solutions with jumps and thin layers.

Averages over equal cells change by the fluxes through faces, so that what leaves a cell enters its neighbour and
jumps move at the right speed. Values at faces come from WENO reconstruction along each axis, fluxes from the local
Lax-Friedrichs formula, steps in time from the strong-stability-preserving Runge-Kutta method of order 3
(R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002; C.-W. Shu, ICASE Report 97-65, 1997). On smooth
solutions the errors of time steps are of order 3; those of sources and, for fluxes that are not linear in more than
one dimension, of faces are of order 2, as both are taken at midpoints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

import numpy as np

from sharp.problems.domains import BoxDomain
from sharp.problems.programs import compile_expressions
from sharp.solvers.conservation_law import ScalarConservationLaw, conservation_law_of
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fluxes import SOURCE, DirectionalFlux
from sharp.solvers.grid import Array
from sharp.solvers.method import NEVER, Deadline, SolverFailed
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem
from sharp.solvers.weno import parabola

# By axis, what cells have at their lower and upper faces.
Sides = Sequence[tuple[Array, Array]]

# States are kept after this many equal intervals of time; others are computed from the last one before.
_INTERVALS = 64
# The bytes that kept states may take.
_KEPT = 2**28
# Points in each cell at which the initial state is taken, along each axis.
_GAUSS = 6
_RESOLUTIONS = {1: (100, 200, 400, 800, 1600), 2: (32, 64, 128, 256), 3: (16, 32, 64)}


class FiniteVolumes:
    """Finite volumes of equal cells; `resolution` is their number along each axis."""

    name = "fv"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return what stands in the way: another domain than a box, several equations, no balance."""
        if not isinstance(system.problem.domain, BoxDomain):
            return "the domain is no interval, rectangle or box"
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
        scheme = WenoScheme(conservation_law_of(system), resolution)
        assert system.problem.time is not None
        times = np.linspace(*system.problem.time, _INTERVALS + 1)
        states = [scheme.start()]
        for before, after in pairwise(times):
            states.append(scheme.advanced(states[-1], before, after, deadline))
        return DiscreteSolution(
            self.name, resolution, StateHistory(scheme, times, states).evaluate, states[0].size
        )


@dataclass(frozen=True)
class WenoScheme:
    """A balance on `count` equal cells along each axis of a box; states have one array axis for each of these."""

    balance: ScalarConservationLaw
    count: int

    @cached_property
    def sweeps(self) -> tuple[DirectionalFlux, ...]:
        """The axes."""
        return tuple(
            DirectionalFlux(self.balance, axis, self.count) for axis in range(len(self.balance.fluxes))
        )

    def start(self) -> Array:
        """Return the averages of the initial state, by Gauss's rule in every cell."""
        system = self.balance.system
        nodes, weights = np.polynomial.legendre.leggauss(_GAUSS)
        places = (np.arange(self.count)[:, None] + (nodes + 1) / 2).ravel() / self.count
        points = [low + (high - low) * places for low, high in system.problem.bounds.values()]
        (values,) = compile_expressions(system.initial, system.space)(*np.meshgrid(*points, indexing="ij"))
        averages = np.broadcast_to(np.asarray(values, dtype=float), [len(places)] * len(points))
        for axis in range(len(points)):
            along = np.moveaxis(averages, axis, -1)
            cells = along.reshape(*along.shape[:-1], self.count, _GAUSS)
            averages = np.moveaxis(cells @ (weights / 2), -1, axis)
        return averages

    def advanced(self, state: Array, time: float, end: float, deadline: Deadline) -> Array:
        """Return the state at a later time, by the method of order 3 of Shu and Osher.

        Raises `TimeLimitExceeded`, and `SolverFailed` where the state grows beyond all bounds.
        """
        while time < end:
            deadline.check()
            with np.errstate(all="ignore"):
                steps = np.ceil((end - time) * self._step_rate(state, time))
                step = (end - time) / max(steps, 1.0)
                state = self._stepped(state, time, step)
            if not np.all(np.isfinite(state)):
                raise SolverFailed(f"the solution grows beyond all bounds after the time {time:.6g}")
            time = time + step if steps > 1 else end
        return state

    def rates(self, state: Array, time: float) -> Array:
        """Return the time derivatives of all averages."""
        source, _ = self.balance.sources(*self.centers, time, state)
        parts = [
            np.moveaxis(sweep.divergence(np.moveaxis(state, axis, -1), time), -1, axis)
            for axis, sweep in enumerate(self.sweeps)
        ]
        return np.asarray(source - sum(parts))

    @cached_property
    def centers(self) -> list[Array]:
        """The coordinates of the centres of all cells, which broadcast."""
        bounds = self.balance.system.problem.bounds.values()
        places = (np.arange(self.count) + 0.5) / self.count
        return list(
            np.meshgrid(*(low + (high - low) * places for low, high in bounds), indexing="ij", sparse=True)
        )

    def sides(self, state: Array, time: float) -> Sides:
        """Return for each axis the values at the lower and at the upper face of every cell, like the averages."""
        found = []
        for axis, sweep in enumerate(self.sweeps):
            below, above = sweep.faces(np.moveaxis(state, axis, -1), time)
            found.append((np.moveaxis(above[..., :-1], -1, axis), np.moveaxis(below[..., 1:], -1, axis)))
        return found

    def values(self, state: Array, sides: Sides, points: Array) -> Array:
        """Return the values [m] at points [m, d]: by parabolas along the axes, which have the cell's average."""
        bounds = np.array(list(self.balance.system.problem.bounds.values()))
        places = (points - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0]) * self.count
        cells = np.clip(places.astype(np.intp), 0, self.count - 1)
        here = tuple(cells.T)
        means = state[here]
        values = means.copy()
        for (lower, upper), share in zip(sides, (places - cells).T, strict=True):
            values += parabola(lower[here], means, upper[here], share) - means
        return np.asarray(values)

    def _stepped(self, state: Array, time: float, step: float) -> Array:
        first = state + step * self.rates(state, time)
        second = 0.75 * state + 0.25 * (first + step * self.rates(first, time + step))
        return np.asarray(state / 3 + 2 / 3 * (second + step * self.rates(second, time + step / 2)))

    def _step_rate(self, state: Array, time: float) -> float:
        """Return the reciprocal of the longest step: where fluxes and sources are stable together."""
        rates = [sweep.rate(np.moveaxis(state, axis, -1), time) for axis, sweep in enumerate(self.sweeps)]
        _, slope = self.balance.sources(*self.centers, time, state)
        return float(sum(rates) + np.max(np.abs(slope)) / SOURCE)


class StateHistory:
    """States at ascending times; those between are computed when asked for, and kept while memory allows it.

    A check asks for the same times once for every derivative and every chunk of points.
    """

    def __init__(self, scheme: WenoScheme, times: Array, states: Sequence[Array]) -> None:
        self._scheme = scheme
        self._known: dict[float, Array] = dict(zip(times.tolist(), states, strict=True))
        # As many as the times of one check, which asks for chunks of points and for derivatives in turn.
        self._sides = lru_cache(maxsize=32)(lambda time: scheme.sides(self._state(time), time))

    def evaluate(self, points: Array, times: Array) -> Array:
        """Return the values [1, k, m] at points [m, d] and times [k]."""
        found = {time: (self._state(time), self._sides(time)) for time in np.sort(times).tolist()}
        return np.stack([self._scheme.values(*found[time], points) for time in times.tolist()])[None]

    def _state(self, time: float) -> Array:
        if time in self._known:
            return self._known[time]
        start = max(earlier for earlier in self._known if earlier <= time)
        state = self._scheme.advanced(self._known[start], start, time, NEVER)
        if (len(self._known) + 1) * state.nbytes <= _KEPT:
            self._known[time] = state
        return state
