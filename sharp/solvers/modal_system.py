"""A system on a periodic box, mode by mode: its linear part as one small matrix each, and all the rest on a grid.

Products of fields are taken on a finer grid, so that modes that are not kept do not alias on those that are. Fields
without a time derivative follow from constraints mode by mode: those that determine them, as lap(psi) = -w does, and
those that hold other fields, as u_x + v_y = 0 does, whose multiplier is the pressure.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sharp.problems import compile_expressions
from sharp.solvers.fourier_modes import Complex, FourierModes
from sharp.solvers.grid import Array, full
from sharp.solvers.phi_functions import LinearOperator
from sharp.solvers.semilinear import SemilinearSystem
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem


def initial_shares_beyond(system: FirstOrderSystem, most: int) -> Array:
    """Return for each number of a mode, ascending, the largest share of the initial state in modes of higher numbers.

    They are those of `most` nodes along each axis; the mean is left aside.
    """
    modes = FourierModes(system.problem.bounds, max(1, (most - 1) // 2), 1.0)
    squares = np.abs(_initial(system, modes)) ** 2
    squares[..., 1:] *= 2
    highest = np.max(np.broadcast_arrays(*map(np.abs, modes.counts)), axis=0).ravel()
    among = np.stack([np.bincount(highest, weights=own.ravel()) for own in squares])
    among[:, 0] = 0.0
    beyond = np.flip(np.cumsum(np.flip(among, axis=1), axis=1), axis=1) - among
    whole = among.sum(axis=1, keepdims=True)
    least = max(1e-12 * float(whole.max(initial=0.0)), 1e-300)
    return np.asarray(np.sqrt(np.max(beyond / np.maximum(whole, least), axis=0)))


def _initial(system: FirstOrderSystem, modes: FourierModes) -> Complex:
    program = compile_expressions(system.initial, system.space)
    shape = (modes.nodes,) * modes.dimension
    with np.errstate(all="ignore"):
        values = np.stack([full(value, shape) for value in program(*modes.points)])
    return modes.coefficients(values)


def tail(modes: FourierModes, state: Complex) -> float:
    """Return the largest share [c] of the last modes in a function, its mean left aside."""
    varying = state.copy()
    varying.reshape(len(state), -1)[:, 0] = 0.0
    whole = modes.norms(varying)
    last = modes.norms(np.where(modes.outermost, state, 0.0))
    return float(np.max(last / np.maximum(whole, max(1e-6 * float(whole.max(initial=0.0)), 1e-300))))


class ModalSystem:
    """The equations for the coefficients [d, ...] of the components that have a time derivative.

    Raises `UnsupportedProblem` where constraints do not determine the other components.
    """

    def __init__(
        self, split: SemilinearSystem, highest: int, kind: type[FourierModes] = FourierModes
    ) -> None:
        self.split = split
        self.system = split.system
        finer = (1 + split.degree) / 2 if split.degree > 1 else 1.0
        self.modes = kind(self.system.problem.bounds, highest, finer)
        self._held = list(split.algebraic)
        self._moving = [i for i in range(len(self.system.components)) if i not in split.algebraic]
        self._chosen = [jet.component for jet in split.jets]
        self._outer = [self._sum_of_derivatives(term.derivatives) for term in split.terms]
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
        modes, terms = self.modes, self.split.terms
        found = np.zeros((len(self.system.components), *modes.shape), dtype=complex)
        if not terms:
            return found
        jets = modes.values(self._derivatives * state[self._chosen]) if self._chosen else ()
        values = self.split.program(*modes.points, time, *jets)
        stacked = np.empty((len(terms), *(modes.nodes,) * modes.dimension))
        for place, value in zip(stacked, values, strict=True):
            place[...] = value
        for term, outer, own in zip(terms, self._outer, modes.coefficients(stacked), strict=True):
            found[term.row] += own if outer is None else outer * own
        return found

    def _sum_of_derivatives(self, derivatives: tuple[tuple[int, ...], ...]) -> Complex | None:
        """Return the factors of a sum of derivatives, None where there are none to take."""
        if not derivatives:
            return None
        return np.asarray(np.sum([self.modes.derivative(by) for by in derivatives], axis=0))


def _operator(matrices: Complex) -> LinearOperator:
    """Return an operator by its matrices [..., c, c]."""
    count = matrices.shape[-1]
    diagonal = np.einsum("...ii->i...", matrices)
    if count == 1 or not np.any(matrices * (1 - np.eye(count))):
        # Diffusion alone has real factors, which are cheaper to work with.
        values = diagonal if np.any(diagonal.imag) else diagonal.real
        return LinearOperator(np.ascontiguousarray(values), diagonal=True)
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
