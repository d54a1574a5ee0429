"""Fluxes through the faces of cells across one axis, and what lies beyond the ends of that axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sharp.problems.programs import ExpressionProgram, compile_expressions
from sharp.solvers.conservation_law import ScalarConservationLaw
from sharp.solvers.grid import Array
from sharp.solvers.system import FirstOrderSystem
from sharp.solvers.weno import GHOSTS, face_values

# The longest steps: the share of a cell that a wave may cross; the share of h²/d that diffusion allows, as the largest
# eigenvalue of the difference of order 4 is 16/3 / h² and steps are stable to -2.5; the change of sources.
COURANT = 0.5
DIFFUSION = 0.4
SOURCE = 1.0


@dataclass(frozen=True)
class DirectionalFlux:
    """One axis of a box of equal cells. Arrays of averages and fluxes have this axis last, the others in order."""

    balance: ScalarConservationLaw
    axis: int
    count: int

    def divergence(self, cells: Array, time: float) -> Array:
        """Return the flux into the right less that into the left face of every cell, over its width."""
        padded = self._padded(cells, time)
        flux = self._convected(*self._between(padded, time), time)
        if self.balance.diffusivities[self.axis] != 0:
            flux = flux - self._diffused(padded, time)
        return np.diff(flux, axis=-1) / self.width

    def faces(self, cells: Array, time: float) -> tuple[Array, Array]:
        """Return the values [..., n + 1] on both sides of every face."""
        return self._between(self._padded(cells, time), time)

    def rate(self, cells: Array, time: float) -> float:
        """Return the reciprocal of the longest time step as far as this axis goes, for Courant numbers of 1."""
        speed = self.balance.flux[self.axis](*self._centers, time, cells)[1]
        diffusivity = self.balance.diffusivity[self.axis](*self._centers, time, cells)[0]
        return float(
            np.max(np.abs(speed)) / self.width / COURANT + np.max(diffusivity) / self.width**2 / DIFFUSION
        )

    @property
    def width(self) -> float:
        """The extent of a cell along the axis."""
        low, high = self._bounds[self.axis]
        return (high - low) / self.count

    @cached_property
    def _centers(self) -> list[Array]:
        """The coordinates of the centres of cells, in the order of space, which broadcast."""
        return self._coordinates(0.5)

    @cached_property
    def _face_points(self) -> list[Array]:
        return self._coordinates(0.0)

    def _coordinates(self, first: float) -> list[Array]:
        """Return coordinates: along this axis from a share of the first cell on, along the others of the centres."""
        found: list[Array] = []
        for index, (low, high) in enumerate(self._bounds):
            start = first if index == self.axis else 0.5
            places = np.arange(start, self.count + 0.25)
            shape = [1] * len(self._bounds)
            shape[index] = len(places)
            values = np.asarray(low + (high - low) / self.count * places)
            found.append(np.moveaxis(values.reshape(shape), self.axis, -1))
        return found

    @property
    def _bounds(self) -> list[tuple[float, float]]:
        return list(self.balance.system.problem.bounds.values())

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
        program = self.balance.flux[self.axis]
        (left, _), (right, _) = sides = [program(*self._face_points, time, side) for side in (below, above)]
        speeds = [speed for _, speed in (*sides, program(*self._face_points, time, (below + above) / 2))]
        fastest = np.maximum.reduce([np.broadcast_to(np.abs(speed), below.shape) for speed in speeds])
        return np.asarray((left + right - fastest * (above - below)) / 2)

    def _diffused(self, padded: Array, time: float) -> Array:
        """Return diffusivity times slope at all faces, of order 4."""
        a, b, c, d = (padded[..., shift : shift + self.count + 1] for shift in range(1, 5))
        slope = (15 * (c - b) - (d - a)) / (12 * self.width)
        middle = (7 * (b + c) - (a + d)) / 12
        (diffusivity,) = self.balance.diffusivity[self.axis](*self._face_points, time, middle)
        return np.asarray(diffusivity * slope)

    def _padded(self, cells: Array, time: float) -> Array:
        """Return the averages with ghost cells: repeated, from the condition at the end, or continued as a line."""
        if self._axis_name in self.balance.system.periodic:
            return np.concatenate([cells[..., -GHOSTS:], cells, cells[..., :GHOSTS]], axis=-1)
        low = self._beyond(cells, 0, time)
        high = self._beyond(cells[..., ::-1], -1, time)
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
        return self.balance.system.space[self.axis]

    @cached_property
    def _ends(self) -> Mapping[int, FaceCondition]:
        """The conditions by the face they hold at: the first or the last."""
        sides = {self._axis_name + "-": 0, self._axis_name + "+": -1}
        found = {sides[given.part]: given for given in self.balance.system.conditions if given.part in sides}
        return {
            face: _end(self.balance.system, given.factors, given.value, face) for face, given in found.items()
        }


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


def _end(system: FirstOrderSystem, factors: Mapping[int, Any], value: Any, face: int) -> FaceCondition:
    import sympy

    zero = sympy.Integer(0)
    numbers = [value, factors.get(0, zero), factors.get(1, zero)]
    return FaceCondition(
        compile_expressions(numbers, [*system.space, system.time]), face, set(factors) == {0}
    )
