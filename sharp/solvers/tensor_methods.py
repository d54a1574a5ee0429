"""Methods on tensor grids in boxes: spectral ones by Chebyshev and Fourier axes, and finite differences."""

from __future__ import annotations

from sharp.problems import BoxDomain, has_accepted_jump
from sharp.solvers.axes import Axis, ChebyshevAxis, FourierAxis, GradedAxis, UniformAxis
from sharp.solvers.boxes import BoxGrid
from sharp.solvers.collocation_driver import solve_collocated
from sharp.solvers.data_features import narrow_places
from sharp.solvers.discontinuities import has_discontinuous_flux_coefficient
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.method import Deadline, Stepping
from sharp.solvers.system import SINGULAR_AXIS, FirstOrderSystem, symmetry_axis
from sharp.solvers.traits import SolutionRegularity

_SPECTRAL = {
    1: (12, 18, 27, 40, 60, 90, 135, 200, 300, 450, 675),
    2: (8, 12, 18, 27, 40, 60, 90, 135),
    3: (6, 8, 10, 12, 14, 16, 20, 25, 32),
}
# What else is affordable where systems are solved by small matrices, one an axis.
_ALONG_AXES = {1: (), 2: (200, 300), 3: (40, 50, 64)}
_UNIFORM = {
    1: (20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10240),
    2: (12, 24, 48, 96, 192),
    3: (10, 14, 20, 28, 40),
}
# Rounding errors of high derivatives grow with the eighth power of the number of Chebyshev nodes.
_HIGH_ORDER = (10, 14, 18, 24, 32, 40)


class _OnBoxes(Stepping):
    """Collocation on the product of axes with ends and of periodic ones."""

    name: str

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes boxes, unless what jumps is only seen in fluxes."""
        if not isinstance(system.problem.domain, BoxDomain):
            return "the domain is no interval, rectangle or box"
        if symmetry_axis(system.problem):
            return SINGULAR_AXIS
        if has_discontinuous_flux_coefficient(system.problem):
            return "a factor inside a derivative jumps, and equations at points do not say that the flux is continuous"
        return None

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        """Solve on a grid of so many nodes along each axis."""

        def grid(count: int) -> BoxGrid:
            return BoxGrid({axis: self._axis(system, axis, count) for axis in system.space})

        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline, self.integrator)

    def _axis(self, system: FirstOrderSystem, axis: str, count: int) -> Axis:
        bounds = system.problem.bounds[axis]
        if axis in system.periodic:
            # A pressure that alternates between an even number of nodes would have no gradient.
            return FourierAxis(*bounds, count | 1 if system.constrained else count)
        return ChebyshevAxis(*bounds, count)


class Chebyshev(_OnBoxes):
    """Collocation at Chebyshev nodes, and at equidistant ones along periodic axes."""

    name = "chebyshev"
    takes_constraints = True

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes boxes with an axis that has ends; flows are to be steady, with pressures free at the boundary."""
        return super().unsupported_reason(system) or self._unfit(system)

    def _unfit(self, system: FirstOrderSystem) -> str | None:
        if not _ends(system):
            return "every axis is periodic, which is what the method fourier is for"
        if system.inertia is not None:
            return "not every field has a time derivative, and it advances those that have"
        if any(condition.component in system.constrained for condition in system.conditions):
            return "a pressure is given at the boundary, where it has no nodes"
        if system.constrained and has_accepted_jump(system.problem):
            return "velocities jump where walls meet, and pressures grow beyond all polynomials there"
        return None

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes along each axis."""
        orders = (jet.by[system.space.index(axis)] for jet in system.jets for axis in _ends(system))
        highest = max(orders, default=0)
        counts = _spectral(system)
        return tuple(n for n in _HIGH_ORDER if n <= counts[-1]) if highest > 2 else counts


class Fourier(_OnBoxes):
    """Collocation at equidistant nodes where every axis is periodic."""

    name = "fourier"

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        """It takes boxes all of whose axes are periodic."""
        unfit = f"not periodic: {', '.join(_ends(system))}" if _ends(system) else None
        return super().unsupported_reason(system) or unfit

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes along each axis."""
        return _spectral(system)


class Differences(_OnBoxes):
    """Finite differences of order 4, on equidistant nodes or on nodes that lie closer where data are narrow."""

    name = "fd"

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        """Nodes along each axis."""
        return _UNIFORM[len(system.space)]

    def _axis(self, system: FirstOrderSystem, axis: str, count: int) -> Axis:
        bounds = system.problem.bounds[axis]
        if axis in system.periodic:
            return UniformAxis(*bounds, count, periodic=True)
        narrow = narrow_places(system.problem, axis)
        return GradedAxis(*bounds, count, narrow=narrow) if narrow else UniformAxis(*bounds, count)


def _spectral(system: FirstOrderSystem) -> tuple[int, ...]:
    dimension = len(system.space)
    more = _ALONG_AXES[dimension] if SolutionRegularity(system).acts_along_axes else ()
    return (*_SPECTRAL[dimension], *more)


def _ends(system: FirstOrderSystem) -> list[str]:
    return [axis for axis in system.space if axis not in system.periodic]
