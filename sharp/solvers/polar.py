"""Method `polar`, for disks and annuli: Chebyshev nodes along the radius, equally spaced ones along the angle.

An annulus is a rectangle in polar coordinates. On a disk the radius runs through [-R, R] with an even number of
nodes, none of them at the centre, and u(r, θ) = u(-r, θ + π) leaves the half with r > 0: functions that are smooth in
x and y are smooth in r across the centre, and no condition is needed there (L. N. Trefethen, Spectral Methods in
MATLAB, 2000, ch. 11; B. Fornberg, A Practical Guide to Pseudospectral Methods, 1996, sec. 6.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sharp.problems import RoundDomain
from sharp.solvers.axes import ChebyshevAxis, FourierAxis, chebyshev_weights
from sharp.solvers.collocation_driver import solve_collocated
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array, Indices
from sharp.solvers.method import Deadline, Stepping
from sharp.solvers.system import FirstOrderSystem


class Polar(Stepping):
    """Collocation on disks and annuli; `resolution` is the number of nodes along a diameter, or across an annulus."""

    name = "polar"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes a disk or an annulus."""
        round_one = isinstance(system.problem.domain, RoundDomain)
        return None if round_one else "the domain is no disk or annulus"

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes along a diameter, or across an annulus."""
        return (8, 12, 16, 24, 32, 40, 48) if system.steady else (8, 12, 16, 24, 32, 40)

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Solve on a grid that represents polynomials of a degree below the resolution in x and y on disks."""
        domain = system.problem.domain
        assert isinstance(domain, RoundDomain)

        def grid(count: int) -> PolarGrid:
            return PolarGrid(domain, count if domain.inner is not None else (count + 1) // 2, 2 * count)

        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline, self.integrator)


@dataclass(frozen=True)
class PolarGrid:
    """A grid of `rings` radii and an even number of `angles`; node i * angles + j is at radius i and angle j.

    Radii ascend to that of the outer circle. Matrices are dense.
    """

    domain: RoundDomain
    rings: int
    angles: int

    @cached_property
    def points(self) -> Array:
        """The nodes [rings * angles, 2]."""
        return self.domain.center + np.column_stack([self._r * self._cosine, self._r * self._sine])

    @cached_property
    def parts(self) -> Mapping[str, Indices]:
        """The nodes of the circles."""
        rings = {"outer": self.rings - 1, "inner": 0}
        return {name: self._ring(index) for name, index in rings.items() if name in self.domain.parts}

    @cached_property
    def weights(self) -> Array:
        """Weights that integrate exactly what the nodes interpolate, times the radius where it is an annulus."""
        return np.repeat(self._radial_weights, self.angles) * (2 * np.pi / self.angles)

    def derivative(self, by: tuple[int, ...]) -> Array:
        """Return the matrix of a derivative along x and y, of any order.

        Up to the second order by the chain rule at the nodes, so that u_xx + u_yy is u_rr + u_r/r + u_θθ/r² exactly;
        above as products of these, averaged over their order.
        """
        if sum(by) <= 2:
            return self._by_chain_rule(by)
        terms = []
        for axis in (0, 1):
            if by[axis] >= 2:
                twice = (2, 0) if axis == 0 else (0, 2)
                terms.append(self.derivative(twice) @ self.derivative((by[0] - twice[0], by[1] - twice[1])))
        return np.asarray(np.mean(terms, axis=0))

    def normal_derivative(self, part: str, order: int) -> Array:
        """Return the derivative along the radius, away from the domain, at the nodes of a circle."""
        sign = 1.0 if part == "outer" else (-1.0) ** order
        rows: Array = self._radial(order)[self.parts[part]]
        return sign * rows

    def replaced_nodes(self, part: str, count: int) -> Indices:
        """Return the nodes of the `count` rings next to a circle, its own first."""
        rings = range(count) if part == "inner" else range(self.rings - 1, self.rings - 1 - count, -1)
        return np.concatenate([self._ring(index) for index in rings])

    def interpolation(self, points: Array) -> Array:
        """Return the matrix of polynomial interpolation along the radius and trigonometric along the angle."""
        x, y = (points - self.domain.center).T
        along = self._radius.stencil(np.hypot(x, y))[1]
        angle = np.arctan2(y, x) % (2 * np.pi)
        around = [self._angle.stencil((angle + turn) % (2 * np.pi))[1] for turn in (0.0, np.pi)]
        terms = zip(self._halves(along), around, strict=False)
        matrix = np.sum([a[:, :, None] * b[:, None, :] for a, b in terms], axis=0)
        return np.asarray(matrix.reshape(len(points), -1))

    @cached_property
    def _radius(self) -> ChebyshevAxis:
        """The axis of the radius, on a disk with the opposite side of the centre below zero."""
        if self.domain.inner is None:
            return ChebyshevAxis(-self.domain.outer, self.domain.outer, 2 * self.rings)
        return ChebyshevAxis(self.domain.inner, self.domain.outer, self.rings)

    @cached_property
    def _angle(self) -> FourierAxis:
        return FourierAxis(0.0, 2 * np.pi, self.angles)

    def _halves(self, rows: Array) -> list[Array]:
        """Split what multiplies values along the whole radius: for the angle itself, and for the opposite one."""
        opposite = rows[:, : -self.rings]
        return [rows[:, -self.rings :], *([opposite[:, ::-1]] if opposite.size else [])]

    @cached_property
    def _r(self) -> Array:
        return np.repeat(self._radius.nodes[-self.rings :], self.angles)

    @cached_property
    def _cosine(self) -> Array:
        return np.tile(np.cos(self._angle.nodes), self.rings)

    @cached_property
    def _sine(self) -> Array:
        return np.tile(np.sin(self._angle.nodes), self.rings)

    @cached_property
    def _radial_weights(self) -> Array:
        if self.domain.inner is not None:
            return self._radius.weights * self._radius.nodes
        # The mean over the angle is even in r, a polynomial of degree rings - 1 in s = 2(r/R)² - 1: Fejér's rule for
        # the Chebyshev polynomials of s, where r dr is R²/4 ds.
        square = 2 * (self._radius.nodes[self.rings :] / self.domain.outer) ** 2 - 1
        return self.domain.outer**2 / 4 * chebyshev_weights(square)

    def _ring(self, index: int) -> Indices:
        return np.arange(index * self.angles, (index + 1) * self.angles)

    def _by_chain_rule(self, by: tuple[int, ...]) -> Array:
        c, s, r = self._cosine[:, None], self._sine[:, None], self._r[:, None]
        match by:
            case (0, 0):
                return np.eye(len(r))
            case (1, 0):
                return c * self._radial(1) - s / r * self._angular(1)
            case (0, 1):
                return s * self._radial(1) + c / r * self._angular(1)
            case (2, 0):
                return c**2 * self._radial(2) + s**2 * self._around - 2 * c * s * self._twist
            case (0, 2):
                return s**2 * self._radial(2) + c**2 * self._around + 2 * c * s * self._twist
            case _:
                return c * s * (self._radial(2) - self._around) + (c**2 - s**2) * self._twist

    @cached_property
    def _around(self) -> Array:
        """The second derivative across the radius: u_r/r + u_θθ/r²."""
        r = self._r[:, None]
        return self._radial(1) / r + self._angular(2) / r**2

    @cached_property
    def _twist(self) -> Array:
        """The mixed derivative along and across the radius: u_rθ/r - u_θ/r²."""
        r = self._r[:, None]
        return (self._radial(1) @ self._angular(1)) / r - self._angular(1) / r**2

    def _radial(self, order: int) -> Array:
        rows = self._radius.derivative(order)[-self.rings :]
        turns = [np.eye(self.angles), np.roll(np.eye(self.angles), self.angles // 2, axis=1)]
        terms = zip(self._halves(rows), turns, strict=False)
        return np.asarray(np.sum([np.kron(half, turn) for half, turn in terms], axis=0))

    def _angular(self, order: int) -> Array:
        return np.asarray(np.kron(np.eye(self.rings), self._angle.derivative(order)))
