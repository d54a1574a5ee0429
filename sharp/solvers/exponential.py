"""Method `etd`: Fourier modes on periodic boxes, with steps in time that are exact for the linear part.

The linear part with constant factors is one small matrix for each mode, whose exponential and phi functions are known
(`phi_functions`); products of fields are taken on a finer grid, so that modes that are not kept do not alias on those
that are. Steps are those of S. Krogstad's exponential Runge-Kutta method of order 4 (ETDRK4-B, J. Comput. Phys. 203,
2005; after S. M. Cox and P. C. Matthews, J. Comput. Phys. 176, 2002, and A.-K. Kassam and L. N. Trefethen, SIAM J.
Sci. Comput. 26, 2005). Two of them are compared with one of twice the length, which gives the error and one more order.

Fields without a time derivative follow from constraints mode by mode: those that determine them, as lap(psi) = -w
does, and those that hold other fields, as u_x + v_y = 0 does, whose multiplier is the pressure.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from math import factorial
from typing import Any

import numpy as np

from sharp.problems import BoxDomain, compile_expressions
from sharp.solvers.data_features import break_times
from sharp.solvers.discontinuities import has_discontinuous_flux_coefficient
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.fourier_modes import Complex, FourierModes
from sharp.solvers.grid import Array, full
from sharp.solvers.method import Deadline, SolverFailed
from sharp.solvers.phi_functions import LinearOperator
from sharp.solvers.semilinear import SemilinearSystem, semilinear
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem
from sharp.solvers.traits import SolutionRegularity

# Nodes along each axis in 1, 2 and 3 dimensions: from the fewest on, each half as many again as the one before.
_FEWEST = (24, 16, 12)
_MOST = (6000, 800, 128)
_RATIO = 1.5
# The initial state is resolved when its last modes hold less than this share of it.
_RESOLVED = 1e-4
# Modes that grow by themselves feed others: so many times as many are needed.
_UNSTABLE = 4.0
# Data that make half of a change within a share of the domain need so many modes over that share.
_ACROSS = 2.0
# A solution whose last modes hold more than this share of it is not resolved.
_UNRESOLVED = 0.005
# The tolerance of steps, as a share of the accuracy that is asked for, and the least that rounding allows; the error
# that is compared with it is that of order 4, and the solution is of order 5.
_IN_TIME = 0.1
_LEAST = 1e-13
_SAFETY = 0.8
_SHRINK = (0.1, 0.8)
# Steps are made longer only by this factor or more, as that means new phi functions.
_GROWTH = (1.25, 4.0)
_SHORTEST = 1e-10
_INSET = 1e-12
# Rates between steps are those of the polynomial through so many steps.
_NEAREST = 6
# States are kept up to so many numbers; beyond, every other one is left out and found again when it is asked for.
_KEPT = 12_000_000
# As many numbers of states between steps are remembered.
_REMEMBERED = 8_000_000


class ExponentialFourier:
    """Fourier modes and exponential integrators; `resolution` is the number of modes along each axis."""

    name = "etd"
    takes_constraints = True

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes periodic boxes and equations whose stiff part is linear."""
        if not isinstance(system.problem.domain, BoxDomain) or set(system.space) != system.periodic:
            return "it takes boxes that are periodic along every axis"
        if system.steady:
            return "it steps in time, and the problem is steady"
        if has_discontinuous_flux_coefficient(system.problem):
            return (
                "a factor inside a derivative jumps, and Fourier modes do not say that the flux is continuous"
            )
        try:
            _Modes(semilinear(system), 2)
        except (UnsupportedProblem, SolverFailed) as error:
            return str(error)
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Return numbers of modes along each axis, from the first that resolves the initial state."""
        index = len(system.space) - 1
        counts = [_FEWEST[index]]
        while counts[-1] * _RATIO < _MOST[index]:
            counts.append(round(counts[-1] * _RATIO))
        narrow = _ACROSS / SolutionRegularity(system).narrowest
        least = min(max(narrow, _UNSTABLE * _highest_unstable(system, counts[-1])), counts[-3])
        resolved = (n for n in counts if n >= least and _initial_tail(system, n) < _RESOLVED)
        # An initial state that is never resolved may be smoothed in time.
        first = next(resolved, least)
        return tuple(count for count in counts if count >= first)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Return the solution by so many modes."""
        discrete = _Modes(semilinear(system), max(1, (resolution - 1) // 2))
        assert system.problem.time is not None
        tolerance = max(_IN_TIME * accuracy, _LEAST)
        computed = _Integration(discrete, tolerance, deadline).over(system.problem.time, break_times(system))
        fields = [index for index, component in enumerate(system.components) if component.order == 0]

        def evaluated(points: Array, times: Array) -> Array:
            values = discrete.modes.at(points)
            return np.stack([values(computed.fields(time)[fields]) for time in times.tolist()], axis=1)

        facts = {"time steps": float(2 * len(computed.steps)), "share of the last modes": computed.tail}
        unknowns = len(system.components) * (2 * discrete.modes.highest + 1) ** len(system.space)
        return DiscreteSolution(self.name, resolution, evaluated, unknowns, facts=facts)


def _highest_unstable(system: FirstOrderSystem, most: int) -> int:
    """Return the number of the last mode along any axis whose own linear part grows faster than the mean's."""
    split, found = semilinear(system), 0
    for index, axis in enumerate(system.space):
        low, high = system.problem.bounds[axis]
        numbers = 2 * np.pi / (high - low) * np.arange(most // 2 + 1)
        rates = np.zeros((len(system.components), len(numbers)))
        for column, jet in enumerate(system.jets):
            if jet.order == jet.by[index]:
                rates[jet.component] += (
                    split.factors[jet.component, column] * ((1j * numbers) ** jet.order).real
                )
        growing = np.any(rates > rates[:, :1] + 1e-9 * np.abs(rates).max(), axis=0)
        found = max(found, int(np.max(np.flatnonzero(growing), initial=0)))
    return found if found < most // 2 else 0


def _initial_tail(system: FirstOrderSystem, resolution: int) -> float:
    modes = FourierModes(system.problem.bounds, max(1, (resolution - 1) // 2), 2.0)
    return _tail(modes, _initial(system, modes))


def _initial(system: FirstOrderSystem, modes: FourierModes) -> Complex:
    program = compile_expressions(system.initial, system.space)
    shape = (modes.nodes,) * modes.dimension
    with np.errstate(all="ignore"):
        values = np.stack([full(value, shape) for value in program(*modes.points)])
    return modes.coefficients(values)


def _tail(modes: FourierModes, state: Complex) -> float:
    """Return the largest share [c] of the last modes in a function, its mean left aside."""
    varying = state.copy()
    varying.reshape(len(state), -1)[:, 0] = 0.0
    whole = modes.norms(varying)
    last = modes.norms(np.where(modes.outermost, state, 0.0))
    return float(np.max(last / np.maximum(whole, max(1e-6 * float(whole.max(initial=0.0)), 1e-300))))


class _Modes:
    """The equations for the coefficients [d, ...] of the components that have a time derivative.

    Raises `UnsupportedProblem` where constraints do not determine the other components.
    """

    def __init__(self, split: SemilinearSystem, highest: int) -> None:
        self.split = split
        self.system = split.system
        finer = (1 + split.degree) / 2 if split.degree > 1 else 1.0
        self.modes = FourierModes(self.system.problem.bounds, highest, finer)
        self._held = list(split.algebraic)
        self._moving = [i for i in range(len(self.system.components)) if i not in split.algebraic]
        self._active, self._chosen = list(split.active), [jet.component for jet in split.jets]
        self._derivatives = np.array([self.modes.derivative(jet.by) for jet in split.jets])
        self._constrain(self._symbol())

    def start(self) -> Complex:
        """Return the coefficients of the initial state, as the constraints allow."""
        found = _initial(self.system, self.modes)[self._moving]
        return self._projected(found) if self._projector is not None else found

    def rest(self, time: float, state: Complex) -> Complex:
        """Return the coefficients of what is not linear with constant factors."""
        rest = self._rests(time, self._expanded(time, state, None))
        if not self._held:
            return rest
        found = rest[self._moving]
        if self._projector is None:
            found = found - self._product(self._from_held, self._product(self._inverse, rest[self._held]))
        return self._projected(found) if self._projector is not None else found

    def fields(self, time: float, state: Complex) -> Complex:
        """Return the coefficients of all components."""
        if not self._held:
            return state
        if self._projector is None:
            held = self._rests(time, self._expanded(time, state, None))[self._held]
            return self._expanded(time, state, -self._product(self._inverse, held))
        rest = self._rests(time, self._expanded(time, state, None))[self._moving]
        driven = self._product(self._own, state) + rest
        return self._expanded(
            time, state, -self._product(self._inverse, self._product(self._to_held, driven))
        )

    def _symbol(self) -> Complex:
        """Return the matrices [..., c, c] of the linear part."""
        count = len(self.system.components)
        found = np.zeros((*self.modes.shape, count, count), dtype=complex)
        for jet, column in zip(self.system.jets, self.split.factors.T, strict=True):
            if np.any(column):
                found[..., :, jet.component] += self.modes.derivative(jet.by)[..., None] * column
        return found

    def _constrain(self, symbol: Complex) -> None:
        moving, held = np.array(self._moving, dtype=np.intp), np.array(self._held, dtype=np.intp)
        self._own = symbol[..., moving[:, None], moving]
        self._projector: Complex | None = None
        if not len(held):
            self.operator = _operator(self._own)
            return
        self._from_held = symbol[..., moving[:, None], held]
        self._to_held = symbol[..., held[:, None], moving]
        among = symbol[..., held[:, None], held]
        used = {jet.component for jet in self.split.jets}
        if used & set(self._held) and any(
            jet.component in self._held and jet.symbol in self.split.rest[row].free_symbols
            for row in self._held
            for jet in self.split.jets
        ):
            raise UnsupportedProblem("a constraint is not linear in the fields without a time derivative")
        if np.any(among):
            self._inverse = _inverse(among)
            self._slaved = -(self._inverse @ self._to_held)
            self.operator = _operator(self._own + self._from_held @ self._slaved)
            return
        if used & set(self._held) or any(self.split.rest[row] != 0 for row in self._held):
            raise UnsupportedProblem(
                "a constraint on other fields has to be linear, and so has its multiplier"
            )
        self._inverse = _inverse(self._to_held @ self._from_held)
        identity = np.eye(len(moving))
        self._projector = identity - self._from_held @ self._inverse @ self._to_held
        self.operator = _operator(self._projector @ self._own)

    def _projected(self, state: Complex) -> Complex:
        return self._product(self._projector, state)

    @staticmethod
    def _product(matrices: Any, vectors: Complex) -> Complex:
        return np.moveaxis((matrices @ np.moveaxis(vectors, 0, -1)[..., None])[..., 0], -1, 0)

    def _expanded(self, time: float, state: Complex, extra: Complex | None) -> Complex:
        """Return the coefficients of all components, the slaved ones without what is not linear unless it is given."""
        if not self._held:
            return state
        found = np.zeros((len(self.system.components), *self.modes.shape), dtype=complex)
        found[self._moving] = state
        if self._projector is None:
            held = self._product(self._slaved, state)
            if extra is None and any(self.split.rest[row] != 0 for row in self._held):
                rest = self._rests(time, self._filled(found, held))[self._held]
                extra = -self._product(self._inverse, rest)
            found[self._held] = held if extra is None else held + extra
        elif extra is not None:
            found[self._held] = extra
        for index, level in self.system.mean.items():
            if index in self._held:
                (value,) = compile_expressions([level], [self.system.time])(time)
                found[(index, *(0,) * self.modes.dimension)] = float(value)
        return found

    def _filled(self, found: Complex, held: Complex) -> Complex:
        filled = found.copy()
        filled[self._held] = held
        return filled

    def _rests(self, time: float, state: Complex) -> Complex:
        """Return the coefficients [c, ...] of all rests at a state [c, ...] of all components."""
        modes, active = self.modes, self._active
        if not active:
            return np.zeros((len(self.system.components), *modes.shape), dtype=complex)
        jets = modes.values(self._derivatives * state[self._chosen]) if self._chosen else ()
        values = self.split.program(*modes.points, time, *jets)
        stacked = np.empty((len(active), *(modes.nodes,) * modes.dimension))
        for place, value in zip(stacked, values, strict=True):
            place[...] = value
        coefficients = modes.coefficients(stacked)
        if len(active) == len(self.system.components):
            return coefficients
        found = np.zeros((len(self.system.components), *modes.shape), dtype=complex)
        found[active] = coefficients
        return found


def _operator(matrices: Complex) -> LinearOperator:
    """Return an operator by its matrices [..., c, c]."""
    count = matrices.shape[-1]
    diagonal = np.einsum("...ii->i...", matrices)
    if count == 1 or not np.any(matrices * (1 - np.eye(count))):
        return LinearOperator(np.ascontiguousarray(diagonal), diagonal=True)
    return LinearOperator(matrices, diagonal=False)


def _inverse(matrices: Complex) -> Complex:
    """Return the inverse of every matrix [..., a, a] but of those that vanish, which are those of the mean.

    Raises `UnsupportedProblem` where another one has none.
    """
    sizes = np.abs(matrices).max(axis=(-1, -2))
    nothing = sizes <= 1e-14 * float(sizes.max(initial=0.0))
    filled = np.where(nothing[..., None, None], np.eye(matrices.shape[-1]), matrices)
    singular = np.linalg.cond(filled) > 1e12
    if np.any(singular):
        raise UnsupportedProblem(
            "the constraints do not determine the fields without a time derivative, mode by mode"
        )
    return np.where(nothing[..., None, None], 0.0, np.linalg.inv(filled))


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


@dataclass(frozen=True)
class _Step:
    """Two steps of equal length; `segment` counts the intervals between jumps of the data."""

    start: float
    length: float
    segment: int

    @property
    def end(self) -> float:
        return self.start + 2 * self.length


class _Integration:
    """Advances coefficients, with steps as long as the tolerance allows."""

    def __init__(self, discrete: _Modes, tolerance: float, deadline: Deadline) -> None:
        self._discrete = discrete
        self._tolerance = tolerance
        self._deadline = deadline
        self._sizes = np.zeros(1)
        self._phis: tuple[float, _Phis, _Phis] | None = None

    def over(self, interval: tuple[float, float], breaks: tuple[float, ...]) -> _ComputedModes:
        """Advance the initial state through an interval; steps end at `breaks`.

        Raises `SolverFailed` and `TimeLimitExceeded`.
        """
        state = self._discrete.start()
        self._sizes = self._discrete.modes.norms(state)
        computed = _ComputedModes(self._discrete, self, state)
        ends = [moment for moment in sorted(breaks) if interval[0] < moment < interval[1]]
        time, length = interval[0], 0.0
        for segment, end in enumerate((*ends, interval[1])):
            length = length or self._first(time, end, state)
            shortest = _SHORTEST * (interval[1] - interval[0])
            while time < end:
                step, state, length = self._accepted(
                    _Step(time, _equal(end - time, length), segment), end, state, shortest
                )
                computed.add(step, state)
                time = end if end - step.end < 1e-9 * step.length else step.end
        return computed

    def phis(self, length: float) -> tuple[_Phis, _Phis]:
        """Return what steps of a length and of twice the length multiply."""
        if self._phis is None or self._phis[0] != length:
            half, whole, twice = self._discrete.operator.phis((length / 2, length, 2 * length), 3)
            self._phis = length, _Phis.of(length, half, whole), _Phis.of(2 * length, whole, twice)
        return self._phis[1:]

    def pair(self, step: _Step, state: Complex) -> tuple[Complex, Complex]:
        """Return the state after two steps, less the error that one of twice the length shows, and that error."""
        short, long = self.phis(step.length)
        rate = self._rest(step, 0.0, state)
        middle = self._advanced(short, step, 0.0, state, rate)
        fine = self._advanced(short, step, step.length, middle, self._rest(step, step.length, middle))
        coarse = self._advanced(long, step, 0.0, state, rate)
        error = (fine - coarse) / 15
        return fine + error, error

    def _advanced(self, phis: _Phis, step: _Step, after: float, state: Complex, rate: Complex) -> Complex:
        h = phis.length
        a1, b1, b2, c1, c2, u1, u2, u3 = phis.first
        halfway = phis.half.apply(state)
        a = halfway + a1.apply(rate)
        rate_a = self._rest(step, after + h / 2, a)
        b = halfway + b1.apply(rate) + b2.apply(rate_a)
        rate_b = self._rest(step, after + h / 2, b)
        whole = phis.whole.apply(state)
        c = whole + c1.apply(rate) + c2.apply(rate_b)
        rate_c = self._rest(step, after + h, c)
        return whole + u1.apply(rate) + u2.apply(rate_a + rate_b) + u3.apply(rate_c)

    def _rest(self, step: _Step, after: float, state: Complex) -> Complex:
        """Return the rates at a time of a step; at its ends those of its inside, as data may jump there."""
        self._deadline.check()
        inset = _INSET * step.length
        return self._discrete.rest(step.start + min(max(after, inset), 2 * step.length - inset), state)

    def _first(self, start: float, end: float, state: Complex) -> float:
        rates = self._discrete.modes.norms(self._discrete.rest(start + _INSET * (end - start), state))
        sizes = self._sizes
        moving = np.isfinite(rates) & (rates > 0) & (sizes > 1e-6 * float(sizes.max(initial=0.0)))
        share = self._tolerance**0.2
        return float(np.min(share * sizes[moving] / rates[moving], initial=(end - start) / 8))

    def _accepted(
        self, step: _Step, end: float, state: Complex, shortest: float
    ) -> tuple[_Step, Complex, float]:
        """Return the next step, the state after it, and the length to try after it."""
        while step.length > shortest:
            after, change = self.pair(step, state)
            sizes = np.maximum(self._sizes, self._discrete.modes.norms(after))
            error = self._relative(change, sizes)
            factor = _SAFETY * (self._tolerance / max(error, 1e-300)) ** 0.2
            if error <= self._tolerance:
                self._sizes = sizes
                growth = min(factor, _GROWTH[1])
                return step, after, step.length * (growth if growth > _GROWTH[0] else 1.0)
            length = step.length * (float(np.clip(factor, *_SHRINK)) if np.isfinite(error) else _SHRINK[0])
            step = _Step(step.start, _equal(end - step.start, length), step.segment)
        largest = float(np.abs(self._discrete.modes.values(state)).max())
        raise SolverFailed(
            f"the solution could not be followed beyond the time {step.start:.6g}, where its largest value is "
            f"{largest:.3g} and steps fell to {step.length:.1e}",
            step.start,
        )

    def _relative(self, change: Complex, sizes: Array) -> float:
        least = max(1e-6 * float(sizes.max(initial=0.0)), 1e-300)
        found = float(np.max(self._discrete.modes.norms(change) / np.maximum(sizes, least)))
        return found if np.isfinite(found) else np.inf


def _equal(left: float, length: float) -> float:
    """Return the length of equal pairs of steps up to the end."""
    return float(left / 2 / np.ceil(left / (2 * length) * (1 - 1e-9)))


@dataclass
class _ComputedModes:
    """The states after every pair of steps, or after some of them: the others are found again when asked for."""

    discrete: _Modes
    integration: _Integration
    first: Complex
    steps: list[_Step] = field(default_factory=list)
    tail: float = 0.0
    _kept: dict[int, Complex] = field(default_factory=dict)
    _every: int = 1
    _found: OrderedDict[Any, Complex] = field(default_factory=OrderedDict)

    def add(self, step: _Step, state: Complex) -> None:
        """Note a pair of steps and the state after it; raises `SolverFailed` where its last modes are too large."""
        self.steps.append(step)
        if len(self.steps) % self._every == 0:
            self._kept[len(self.steps)] = state
        if len(self._kept) * state.size > _KEPT:
            self._every *= 2
            self._kept = {index: kept for index, kept in self._kept.items() if index % self._every == 0}
        self.tail = max(self.tail, _tail(self.discrete.modes, state))
        if self.tail > _UNRESOLVED and len(self.steps) > 1:
            raise SolverFailed(
                f"so many modes do not resolve the solution at the time {step.end:.4g}: "
                f"the last ones hold {self.tail:.1e} of it"
            )

    def fields(self, time: float) -> Complex:
        """Return the coefficients of all components at a time."""
        return self._remembered(time, lambda: self.discrete.fields(time, self._state(time)))

    def _remembered(self, key: Any, make: Any) -> Complex:
        if key not in self._found:
            self._found[key] = make()
            if len(self._found) * self._found[key].size > _REMEMBERED:
                self._found.popitem(last=False)
        self._found.move_to_end(key)
        return self._found[key]

    def _state(self, time: float) -> Complex:
        """Return the state at any time: exact for the linear part, with a polynomial in time for the rest."""
        starts = np.array([step.start for step in self.steps])
        index = int(np.clip(np.searchsorted(starts, time, side="right") - 1, 0, len(starts) - 1))
        step = self.steps[index]
        after = time - step.start
        if after <= 0:
            return self._after(index)
        nodes = list(self._nodes(index))
        times = np.array([moment for moment, _ in nodes]) - step.start
        scale = 2 * step.length
        weights = np.linalg.inv(np.vander(times / scale, increasing=True))
        rates = np.tensordot(weights, np.stack([rate for _, rate in nodes]), axes=1)
        (phis,) = self.discrete.operator.phis((after,), len(nodes))
        found = phis[0].apply(self._after(index))
        for power, rate in enumerate(rates):
            share = (after / scale) ** power * after * factorial(power)
            found = found + share * phis[power + 1].apply(rate)
        return found

    def _nodes(self, index: int) -> Iterator[tuple[float, Complex]]:
        """Yield times and rates at the ends of steps about one, none beyond a jump of the data."""
        own = self.steps[index].segment
        inside = [i for i, step in enumerate(self.steps) if step.segment == own]
        first = min(max(index - _NEAREST // 2 + 1, inside[0]), max(inside[-1] + 2 - _NEAREST, inside[0]))
        for place in range(first, min(first + _NEAREST, inside[-1] + 2)):
            last = place > inside[-1]
            step = self.steps[place - 1] if last else self.steps[place]
            inset = _INSET * step.length
            moment = step.end if last else step.start
            given = moment + (-inset if last else inset)
            yield moment, self._remembered((place, last), partial(self._rate, place, given))

    def _rate(self, count: int, time: float) -> Complex:
        return self.discrete.rest(time, self._after(count))

    def _after(self, count: int) -> Complex:
        """Return the state after so many pairs of steps."""
        known = count - count % self._every
        while known > 0 and known not in self._kept:
            known -= self._every
        state = self._kept[known] if known > 0 else self.first
        for index in range(known, count):
            state = self.integration.pair(self.steps[index], state)[0]
        return state
