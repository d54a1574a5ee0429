"""Method `fv`: finite volumes for scalar balances on boxes, for solutions with jumps and thin layers.

Averages over equal cells change by the fluxes through faces, so that what leaves a cell enters its neighbour and
jumps move at the right speed. Values at faces come from WENO reconstruction along each axis, fluxes from the local
Lax-Friedrichs formula, steps in time from the strong-stability-preserving Runge-Kutta method of order 3
(R. J. LeVeque, Finite Volume Methods for Hyperbolic Problems, 2002; C.-W. Shu, ICASE Report 97-65, 1997). On smooth
solutions the errors of time steps are of order 3; those of sources and, for fluxes that are not linear in more than
one dimension, of faces are of order 2, as both are taken at midpoints.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import sympy

from sharp.problems import BoxDomain, ExpressionProgram, compile_expressions
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.method import NEVER, Deadline, SolverFailed
from sharp.solvers.system import (
    SINGULAR_AXIS,
    FirstOrderSystem,
    SpatialDerivative,
    UnsupportedProblem,
    real,
    symmetry_axis,
)


@dataclass(frozen=True)
class ScalarConservationLaw:
    """The flux, its derivative by u (the speed), and the diffusivity along every axis; and the source.

    All are expressions of space, time and u.
    """

    system: FirstOrderSystem
    fluxes: tuple[sympy.Expr, ...]
    speeds: tuple[sympy.Expr, ...]
    diffusivities: tuple[sympy.Expr, ...]
    source: sympy.Expr

    @cached_property
    def flux(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program for flux and speed; its arguments are space, time and u."""
        pairs = zip(self.fluxes, self.speeds, strict=True)
        return tuple(compile_expressions(list(pair), self._names) for pair in pairs)

    @cached_property
    def diffusivity(self) -> tuple[ExpressionProgram, ...]:
        """For each axis a program for the diffusivity."""
        return tuple(compile_expressions([factor], self._names) for factor in self.diffusivities)

    @cached_property
    def sources(self) -> ExpressionProgram:
        """A program for the source and its derivative by u."""
        slope = sympy.diff(self.source, _jet(self.system))
        return compile_expressions([self.source, slope], self._names)

    @property
    def _names(self) -> tuple[str, ...]:
        return (*self.system.space, self.system.time, _jet(self.system).name)


def conservation_law_of(system: FirstOrderSystem) -> ScalarConservationLaw:
    """Return the balance that a system of one equation of first order in time expresses.

    What is left of a derivative along an axis when a factor depends on place is a source. Raises `UnsupportedProblem`.
    """
    if system.steady or len(system.components) != 1:
        raise UnsupportedProblem("finite volumes here advance one equation of first order in time")
    if any(jet.order > 2 or (1 in jet.by and jet.order > 1) for jet in system.jets):
        raise UnsupportedProblem("a balance has no mixed derivatives and none above the second")
    slopes = [_jet(system, axis, 1) for axis in range(len(system.space))]
    rest, diffusivities = _without_diffusion(system, slopes)
    speeds = tuple(-sympy.diff(rest, slope) for slope in slopes)
    if any(speed.free_symbols & set(slopes) for speed in speeds):
        raise UnsupportedProblem(
            "the equation is no balance of fluxes: it is not linear in the first derivatives"
        )
    fluxes = tuple(_primitive(speed, _jet(system)) for speed in speeds)
    source = rest.xreplace(dict.fromkeys(slopes, sympy.Integer(0)))
    explicit = [sympy.diff(flux, real(name)) for flux, name in zip(fluxes, system.space, strict=True)]
    return ScalarConservationLaw(
        system, fluxes, speeds, diffusivities, sympy.expand_mul(source + sympy.Add(*explicit), deep=False)
    )


def _without_diffusion(system: FirstOrderSystem, slopes: list[Any]) -> tuple[Any, tuple[Any, ...]]:
    """Return the rate less all diffusion, and the diffusivity along every axis."""
    rest, u = system.rhs[0], _jet(system)
    second = [_jet(system, axis, 2) for axis in range(len(slopes))]
    diffusivities = tuple(sympy.diff(rest, jet) for jet in second)
    if any(factor.free_symbols & {*second, *slopes} for factor in diffusivities):
        raise UnsupportedProblem("the diffusivity depends on derivatives")
    for factor, slope, curvature, name in zip(diffusivities, slopes, second, system.space, strict=True):
        rest -= factor * curvature
        rest -= (sympy.diff(factor, real(name)) + sympy.diff(factor, u) * slope) * slope
    return sympy.expand_mul(rest, deep=False), diffusivities


def _primitive(speed: Any, u: Any) -> Any:
    """Return a flux whose derivative by u is the speed, if there is a formula for one."""
    flux = sympy.integrate(speed, u)
    if flux.has(sympy.Integral):
        raise UnsupportedProblem(f"no formula was found for the flux whose derivative is '{speed}'")
    return flux


def _jet(system: FirstOrderSystem, axis: int = 0, order: int = 0) -> Any:
    return SpatialDerivative(0, tuple(order * (index == axis) for index in range(len(system.space)))).symbol


GHOSTS = 3

# Averages over cells below this size, squared, count as smooth.
_SMALL = 1e-40


def face_values(averages: Array) -> tuple[Array, Array]:
    """Return the values [..., n + 1] on the left and the right of every face of n cells, of order 5 where smooth.

    `averages` [..., n + 6] has three ghost cells at each end. WENO-Z: R. Borges, M. Carmona, B. Costa and
    W. S. Don, J. Comput. Phys. 227, 2008.
    """
    count = averages.shape[-1] - 2 * GHOSTS + 1
    cells = [averages[..., shift : shift + count] for shift in range(2 * GHOSTS)]
    return _upwind(*cells[:5]), _upwind(*cells[:0:-1])


def _upwind(a: Array, b: Array, c: Array, d: Array, e: Array) -> Array:
    """Return the value at the face between cells c and d, seen from c."""
    rough = (
        13 / 12 * (a - 2 * b + c) ** 2 + (a - 4 * b + 3 * c) ** 2 / 4,
        13 / 12 * (b - 2 * c + d) ** 2 + (b - d) ** 2 / 4,
        13 / 12 * (c - 2 * d + e) ** 2 + (3 * c - 4 * d + e) ** 2 / 4,
    )
    whole = (rough[0] - rough[2]) ** 2
    first, second, third = (
        share * (1 + whole / (_SMALL + part**2)) for share, part in zip((1, 6, 3), rough, strict=True)
    )
    total = first * (2 * a - 7 * b + 11 * c) + second * (5 * c - b + 2 * d) + third * (2 * c + 5 * d - e)
    return total / (6 * (first + second + third))


def parabola(left: Array, mean: Array, right: Array, share: Array) -> Array:
    """Return at a share of the way through a cell the parabola with the given mean and values at both faces.

    P. Colella and P. R. Woodward, The piecewise parabolic method, J. Comput. Phys. 54, 1984, eq. 1.4.
    """
    bend = 6 * mean - 3 * (left + right)
    return left + share * (right - left + bend * (1 - share))


# The longest steps: the share of a cell that a wave may cross; the share of h²/d that diffusion allows, as the largest
# eigenvalue of the difference of order 4 is 16/3 / h² and steps are stable to -2.5; the change of sources.
COURANT = 0.5
DIFFUSION = 0.4
SOURCE = 1.0


@dataclass(frozen=True)
class DirectionalFlux:
    """One axis of a box of equal cells. Arrays of averages and fluxes have this axis last, the others in order."""

    law: ScalarConservationLaw
    axis: int
    count: int

    def divergence(self, cells: Array, time: float) -> Array:
        """Return the flux into the right less that into the left face of every cell, over its width."""
        padded = self._padded(cells, time)
        flux = self._convected(*self._between(padded, time), time)
        if self.law.diffusivities[self.axis] != 0:
            flux = flux - self._diffused(padded, time)
        return np.diff(flux, axis=-1) / self.width

    def faces(self, cells: Array, time: float) -> tuple[Array, Array]:
        """Return the values [..., n + 1] on both sides of every face."""
        return self._between(self._padded(cells, time), time)

    def rate(self, cells: Array, time: float) -> float:
        """Return the reciprocal of the longest time step as far as this axis goes, for Courant numbers of 1."""
        _, speed = self.law.flux[self.axis](*self._centers, time, cells)
        (diffusivity,) = self.law.diffusivity[self.axis](*self._centers, time, cells)
        convection = np.max(np.abs(speed)) / self.width / COURANT
        return float(convection + np.max(diffusivity) / self.width**2 / DIFFUSION)

    @property
    def width(self) -> float:
        """The extent of a cell along the axis."""
        low, high = self._bounds[self.axis]
        return (high - low) / self.count

    @cached_property
    def _centers(self) -> list[Array]:
        return self._coordinates(0.5)

    @cached_property
    def _face_points(self) -> list[Array]:
        return self._coordinates(0.0)

    def _coordinates(self, first: float) -> list[Array]:
        """Return coordinates that broadcast: from a share of the first cell on, along other axes of the centres."""
        along = []
        for index, (low, high) in enumerate(self._bounds):
            start = first if index == self.axis else 0.5
            along.append(low + (high - low) / self.count * np.arange(start, self.count + 0.25))
        return [
            np.moveaxis(values, self.axis, -1) for values in np.meshgrid(*along, indexing="ij", sparse=True)
        ]

    @property
    def _bounds(self) -> list[tuple[float, float]]:
        return list(self.law.system.problem.bounds.values())

    def _between(self, padded: Array, time: float) -> tuple[Array, Array]:
        """Reconstruct values at faces; on the boundary a given value is the one outside."""
        below, above = face_values(padded)
        for values, face in ((below, 0), (above, -1)):
            end = self._ends.get(face)
            if end is not None and end.fixes:
                values[..., face] = end.value(self._face_points, time)[..., 0]
        return below, above

    def _convected(self, below: Array, above: Array, time: float) -> Array:
        """Return the local Lax-Friedrichs flux: the mean of both sides less what the fastest wave carries."""
        program = self.law.flux[self.axis]
        (left, _), (right, _) = sides = [program(*self._face_points, time, side) for side in (below, above)]
        speeds = [speed for _, speed in (*sides, program(*self._face_points, time, (below + above) / 2))]
        fastest = np.maximum.reduce([np.broadcast_to(np.abs(speed), below.shape) for speed in speeds])
        return np.asarray((left + right - fastest * (above - below)) / 2)

    def _diffused(self, padded: Array, time: float) -> Array:
        a, b, c, d = (padded[..., shift : shift + self.count + 1] for shift in range(1, 5))
        slope = (15 * (c - b) - (d - a)) / (12 * self.width)
        middle = (7 * (b + c) - (a + d)) / 12
        (diffusivity,) = self.law.diffusivity[self.axis](*self._face_points, time, middle)
        return np.asarray(diffusivity * slope)

    def _padded(self, cells: Array, time: float) -> Array:
        """Return the averages with ghost cells: repeated, from the condition at the end, or continued as a line."""
        if self._axis_name in self.law.system.periodic:
            return np.concatenate([cells[..., -GHOSTS:], cells, cells[..., :GHOSTS]], axis=-1)
        low, high = self._beyond(cells, 0, time), self._beyond(cells[..., ::-1], -1, time)
        return np.concatenate([low[..., ::-1], cells, high], axis=-1)

    def _beyond(self, cells: Array, face: int, time: float) -> Array:
        """Return the ghost cells beyond the end at which `cells` begin, nearest first."""
        end = self._ends.get(face)
        if end is None:
            return cells[..., :1] + np.arange(1, GHOSTS + 1) * (cells[..., :1] - cells[..., 1:2])
        distance = self.width * np.arange(1.0, 2 * GHOSTS, 2)
        return end.mirrored(cells[..., :GHOSTS], distance, self._face_points, time)

    @property
    def _axis_name(self) -> str:
        return self.law.system.space[self.axis]

    @cached_property
    def _ends(self) -> Mapping[int, FaceCondition]:
        """The conditions by the face they hold at: the first or the last."""
        system, found = self.law.system, {}
        faces = {self._axis_name + "-": 0, self._axis_name + "+": -1}
        for given in system.conditions:
            if given.part in faces:
                numbers = [given.value, *(given.factors.get(order, sympy.Integer(0)) for order in (0, 1))]
                program = compile_expressions(numbers, [*system.space, system.time])
                face = faces[given.part]
                found[face] = FaceCondition(program, face, set(given.factors) == {0})
        return found


@dataclass(frozen=True)
class FaceCondition:
    """A condition `a u + b (outward derivative) = value` at one end of an axis, as the face there sees it."""

    program: ExpressionProgram
    face: int
    fixes: bool

    def value(self, points: list[Array], time: float) -> Array:
        """Return the given value of u itself [..., 1] at the end, where the condition fixes it."""
        value, factor, _ = self._numbers(points, time)
        return np.asarray(value / factor)

    def mirrored(self, cells: Array, distance: Array, points: list[Array], time: float) -> Array:
        """Return values as far outside as `cells` [..., g] are inside, which fulfil the condition between them."""
        value, factor, slope = self._numbers(points, time)
        return np.asarray((value - cells * (factor / 2 - slope / distance)) / (factor / 2 + slope / distance))

    def _numbers(self, points: list[Array], time: float) -> list[Array]:
        place = [values[..., [self.face]] if values.shape[-1] > 1 else values for values in points]
        shape = np.broadcast_shapes(*(values.shape for values in place))
        return [np.broadcast_to(number, shape) for number in self.program(*place, time)]


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
        scheme = WenoScheme(conservation_law_of(system), resolution)
        assert system.problem.time is not None
        times = np.linspace(*system.problem.time, _INTERVALS + 1)
        states = [scheme.start()]
        for before, after in pairwise(times):
            states.append(scheme.advanced(states[-1], before, after, deadline))
        history = StateHistory(scheme, times, states)
        return DiscreteSolution(self.name, resolution, history.evaluate, states[0].size)


@dataclass(frozen=True)
class WenoScheme:
    """A balance on `count` equal cells along each axis of a box; states have one array axis for each of these."""

    law: ScalarConservationLaw
    count: int

    @cached_property
    def directions(self) -> tuple[DirectionalFlux, ...]:
        """The axes."""
        axes = range(len(self.law.fluxes))
        return tuple(DirectionalFlux(self.law, axis, self.count) for axis in axes)

    def start(self) -> Array:
        """Return the averages of the initial state, by Gauss's rule in every cell."""
        system = self.law.system
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
        source, _ = self.law.sources(*self.centers, time, state)
        parts = [
            np.moveaxis(direction.divergence(np.moveaxis(state, axis, -1), time), -1, axis)
            for axis, direction in enumerate(self.directions)
        ]
        return np.asarray(source - sum(parts))

    @cached_property
    def centers(self) -> list[Array]:
        """The coordinates of the centres of all cells, which broadcast."""
        bounds = self.law.system.problem.bounds.values()
        places = (np.arange(self.count) + 0.5) / self.count
        along = [low + (high - low) * places for low, high in bounds]
        return list(np.meshgrid(*along, indexing="ij", sparse=True))

    def sides(self, state: Array, time: float) -> Sides:
        """Return for each axis the values at the lower and at the upper face of every cell, like the averages."""
        found = []
        for axis, direction in enumerate(self.directions):
            below, above = direction.faces(np.moveaxis(state, axis, -1), time)
            found.append((np.moveaxis(above[..., :-1], -1, axis), np.moveaxis(below[..., 1:], -1, axis)))
        return found

    def values(self, state: Array, sides: Sides, points: Array) -> Array:
        """Return the values [m] at points [m, d]: by parabolas along the axes, which have the cell's average."""
        bounds = np.array(list(self.law.system.problem.bounds.values()))
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
        rates = [
            direction.rate(np.moveaxis(state, axis, -1), time)
            for axis, direction in enumerate(self.directions)
        ]
        _, slope = self.law.sources(*self.centers, time, state)
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
