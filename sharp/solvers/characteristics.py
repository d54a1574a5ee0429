"""Method `characteristics`: linear transport of one field, traced back to its initial and boundary values.

Along curves with dX/ds = a(X, s) the equation `u_t + a(x, t)·grad(u) = b(x, t, u)` is du/ds = b (L. C. Evans, Partial
Differential Equations, 2010, sec. 3.2). Jumps stay as sharp as they are, as nothing is ever averaged; the only error is
that of the curves, by the classical Runge-Kutta method of order 4.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import sympy

from sharp.problems import BoxDomain, ExpressionProgram, compile_expressions
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.method import Deadline, SolverFailed
from sharp.solvers.system import FirstOrderSystem, SpatialDerivative

_RESOLUTIONS = (4, 8, 16, 32, 64, 128, 256, 512)
# Iterations for the place at which a curve reaches the boundary.
_NEWTON = 8


class Characteristics:
    """Curves of `resolution` steps from any point back to the beginning or to where it entered."""

    name = "characteristics"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """Return what stands in the way: several fields, other terms, speeds that depend on the field."""
        if not isinstance(system.problem.domain, BoxDomain):
            return "the domain is no interval, rectangle or box"
        if system.steady or len(system.components) > 1 or any(jet.order > 1 for jet in system.jets):
            return "it traces one field with first derivatives alone"
        symbols = {jet.symbol for jet in system.jets}
        for (_, j), factor in system.jacobian.items():
            if system.jets[j].order and factor.free_symbols & symbols:
                return "the speed depends on the field, so that curves may cross"
        if not any(jet.order for jet in system.jets):
            return "nothing is transported"
        if any(set(condition.factors) != {0} for condition in system.conditions):
            return "a condition holds a derivative"
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of steps along a curve."""
        del system
        return _RESOLUTIONS

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution, which is computed where it is asked for. Raises `SolverFailed`."""
        del accuracy
        deadline.check()
        curves = Curves(system, resolution)
        low, high = curves.bounds.T
        # Where something enters without a value is seen from points all over the domain at the end.
        middle = low + (high - low) * np.random.default_rng(0).random((200, len(low)))
        assert system.problem.time is not None
        curves.evaluate(middle, np.array([system.problem.time[1]]))
        return DiscreteSolution(self.name, resolution, curves.evaluate, resolution)


@dataclass(frozen=True)
class Curves:
    """The curves of a transport equation, of `count` steps each."""

    system: FirstOrderSystem
    count: int

    @cached_property
    def bounds(self) -> Array:
        """The ends [d, 2] of the domain."""
        return np.array(list(self.system.problem.bounds.values()))

    def evaluate(self, points: Array, times: Array) -> Array:
        """Return the values [1, k, m] at points [m, d] and times [k]."""
        assert self.system.problem.time is not None
        # By rounding a time may come before the start, from where curves would be traced the wrong way, out of the end.
        times = np.maximum(times, self.system.problem.time[0])
        ends, starts = np.tile(points, (len(times), 1)), np.repeat(times, len(points))
        with np.errstate(all="ignore"):
            return self._values(ends, starts).reshape(1, len(times), len(points))

    def _values(self, points: Array, times: Array) -> Array:
        """Return the values [m] at points [m, d], each at a time of its own."""
        assert self.system.problem.time is not None
        start = self.system.problem.time[0]
        steps = (start - times) / self.count
        places = [points]
        for index in range(self.count):
            places.append(self._stepped(places[-1], times + index * steps, steps))
        feet, begun = np.array(places[-1]), np.full(len(points), start)
        sources = np.full(len(points), -1)
        for number, (axis, side, _) in enumerate(self._faces):
            crossed = self._first_crossing(places, axis, side)
            here = np.flatnonzero(crossed < self.count)
            index = crossed[here]
            origin = np.stack(places)[index, here]
            found, when = self._entry(origin, times[here] + index * steps[here], steps[here], axis, side)
            # Beyond the domain a curve may cross other faces as well: where it entered is where it was last.
            later = (sources[here] < 0) | (when > begun[here])
            chosen = here[later]
            feet[chosen], begun[chosen], sources[chosen] = found[later], when[later], number
        values = np.array(self._given(self._initial, self._wrapped(feet), begun))
        for number, (axis, side, program) in enumerate(self._faces):
            chosen = sources == number
            if program is not None:
                values[chosen] = self._given(program, feet[chosen], begun[chosen])
            elif np.any(chosen):
                end = f"{self.system.space[axis]} = {self.bounds[axis, side]:g}"
                raise SolverFailed(f"what enters at {end} is not known")
        return self._carried(feet, values, begun, times) if self._has_source else values

    def _first_crossing(self, places: list[Array], axis: int, side: int) -> Any:
        """Return for each curve the first of its steps that ends beyond a face, `count` where none does."""
        bound = self.bounds[axis, side]
        beyond = np.stack([(p[:, axis] - bound) * (1 if side else -1) > 0 for p in places[1:]])
        return np.where(beyond.any(axis=0), beyond.argmax(axis=0), self.count)

    def _entry(self, origin: Array, times: Array, steps: Array, axis: int, side: int) -> tuple[Array, Array]:
        """Return where and when curves reach a face within their next steps, by Newton's method for their lengths."""
        bound, share = self.bounds[axis, side], np.full(len(origin), 0.5)
        for _ in range(_NEWTON):
            found = self._stepped(origin, times, share * steps)
            speed = self._velocity(found, times + share * steps)[:, axis]
            share = np.clip(share + (bound - found[:, axis]) / (speed * steps), 0.0, 1.0)
        found = self._stepped(origin, times, share * steps)
        found[:, axis] = bound
        return found, times + share * steps

    def _carried(self, feet: Array, values: Array, begun: Array, times: Array) -> Array:
        """Return the values at the ends of curves that begin at feet with given values, at times of their own."""
        state = np.concatenate([feet, values[:, None]], axis=1)
        length, now = (times - begun) / self.count, begun

        def slope(state: Array, when: Array) -> Array:
            *speeds, source = self._transport(*self._wrapped(state[:, :-1]).T, when, state[:, -1])
            return np.stack([np.broadcast_to(each, when.shape) for each in (*speeds, source)], axis=1)

        for _ in range(self.count):
            state = _runge_kutta(slope, state, now, length)
            now = now + length
        return np.asarray(state[:, -1])

    def _velocity(self, places: Array, when: Array) -> Array:
        *speeds, _ = self._transport(*self._wrapped(places).T, when, 0.0)
        return np.stack([np.broadcast_to(speed, when.shape) for speed in speeds], axis=1)

    def _stepped(self, points: Array, times: Array, steps: Array) -> Array:
        return _runge_kutta(self._velocity, points, times, steps)

    def _wrapped(self, points: Array) -> Array:
        """Return points with periodic coordinates inside the domain, and others no further than its ends."""
        low, high = self.bounds.T
        repeated = low + np.mod(points - low, high - low)
        periodic = [name in self.system.periodic for name in self.system.space]
        return np.where(periodic, repeated, np.clip(points, low, high))

    def _given(self, program: ExpressionProgram, points: Array, times: Array) -> Array:
        (values,) = program(*points.T, times)
        return np.broadcast_to(np.asarray(values, dtype=float), times.shape)

    @cached_property
    def _initial(self) -> ExpressionProgram:
        return compile_expressions(self.system.initial, [*self.system.space, self.system.time])

    @cached_property
    def _faces(self) -> list[tuple[int, int, ExpressionProgram | None]]:
        """The faces of axes that are not periodic, with programs of the values there, None where there are none."""
        names = [*self.system.space, self.system.time]
        given: Mapping[str, Any] = {
            each.part: compile_expressions([each.value / each.factors[0]], names)
            for each in self.system.conditions
        }
        return [
            (axis, side, given.get(name + "-+"[side]))
            for axis, name in enumerate(self.system.space)
            if name not in self.system.periodic
            for side in (0, 1)
        ]

    @cached_property
    def _has_source(self) -> bool:
        return bool(self._source != 0)

    @cached_property
    def _slopes(self) -> list[Any]:
        axes = range(len(self.system.space))
        return [SpatialDerivative(0, tuple(int(a == axis) for a in axes)).symbol for axis in axes]

    @cached_property
    def _source(self) -> Any:
        return self.system.rhs[0].xreplace(dict.fromkeys(self._slopes, sympy.Integer(0)))

    @cached_property
    def _transport(self) -> ExpressionProgram:
        """A program of the speeds and the source; its arguments are space, time and the field."""
        field = SpatialDerivative(0, (0,) * len(self.system.space)).symbol
        speeds = [-sympy.diff(self.system.rhs[0], slope) for slope in self._slopes]
        names = [*self.system.space, self.system.time, field.name]
        return compile_expressions([*speeds, self._source], names)


def _runge_kutta(slope: Any, state: Array, times: Array, steps: Array) -> Array:
    """Return states [m, c] after a step of the classical method, of a length [m] of its own for each."""
    length = steps[:, None]
    first = slope(state, times)
    second = slope(state + length / 2 * first, times + steps / 2)
    third = slope(state + length / 2 * second, times + steps / 2)
    fourth = slope(state + length * third, times + steps)
    return np.asarray(state + length / 6 * (first + 2 * second + 2 * third + fourth))
