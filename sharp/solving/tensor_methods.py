"""Methods on tensor grids in boxes: spectral ones by Chebyshev and Fourier axes, and finite differences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from sharp.problems.domains import BoxDomain
from sharp.solving.axes import Axis, ChebyshevAxis, FourierAxis, UniformAxis
from sharp.solving.boxes import BoxGrid
from sharp.solving.collocated import solve_collocated
from sharp.solving.method import Deadline
from sharp.solving.solution import Solution
from sharp.solving.system import System

_NO_BOX = "the domain is no interval, rectangle or box"
_SPECTRAL = {1: (12, 18, 27, 40, 60, 90, 135, 200, 300), 2: (8, 12, 18, 27, 40), 3: (6, 8, 10, 12, 14, 16)}
_UNIFORM = {1: (20, 40, 80, 160, 320, 640, 1280), 2: (12, 24, 48, 96), 3: (10, 14, 20)}
# Rounding errors of high derivatives grow with the eighth power of the number of Chebyshev nodes.
_HIGH_ORDER = (10, 14, 18, 24, 32, 40)


@dataclass(frozen=True)
class Chebyshev:
    """Collocation at Chebyshev nodes, and at equidistant ones along periodic axes."""

    name = "chebyshev"

    def refusal(self, system: System) -> str | None:
        """It takes boxes with an axis that has ends."""
        if not isinstance(system.problem.domain, BoxDomain):
            return _NO_BOX
        return None if _ends(system) else "every axis is periodic, which is what the method fourier is for"

    def resolutions(self, system: System) -> tuple[int, ...]:
        """Nodes along each axis."""
        highest = max(max(jet.by[system.space.index(axis)] for axis in _ends(system)) for jet in system.jets)
        counts = _SPECTRAL[len(system.space)]
        return tuple(n for n in _HIGH_ORDER if n <= counts[-1]) if highest > 2 else counts

    def solve(self, system: System, resolution: int, accuracy: float, deadline: Deadline) -> Solution:
        """Solve on a grid of so many nodes along each axis."""
        grid = _grid(system, ChebyshevAxis, FourierAxis)
        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline)


@dataclass(frozen=True)
class Fourier:
    """Collocation at equidistant nodes where every axis is periodic."""

    name = "fourier"

    def refusal(self, system: System) -> str | None:
        """It takes boxes all of whose axes are periodic."""
        if not isinstance(system.problem.domain, BoxDomain):
            return _NO_BOX
        return f"not periodic: {', '.join(_ends(system))}" if _ends(system) else None

    def resolutions(self, system: System) -> tuple[int, ...]:
        """Nodes along each axis."""
        return _SPECTRAL[len(system.space)]

    def solve(self, system: System, resolution: int, accuracy: float, deadline: Deadline) -> Solution:
        """Solve on a grid of so many nodes along each axis."""
        grid = _grid(system, ChebyshevAxis, FourierAxis)
        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline)


@dataclass(frozen=True)
class Differences:
    """Finite differences of order 4 on equidistant nodes."""

    name = "fd"

    def refusal(self, system: System) -> str | None:
        """It takes boxes."""
        return None if isinstance(system.problem.domain, BoxDomain) else _NO_BOX

    def resolutions(self, system: System) -> tuple[int, ...]:
        """Nodes along each axis."""
        return _UNIFORM[len(system.space)]

    def solve(self, system: System, resolution: int, accuracy: float, deadline: Deadline) -> Solution:
        """Solve on a grid of so many nodes along each axis."""
        grid = _grid(system, UniformAxis, partial(UniformAxis, periodic=True))
        return solve_collocated(self.name, system, grid, resolution, accuracy, deadline)


def _ends(system: System) -> list[str]:
    return [axis for axis in system.space if axis not in system.periodic]


def _grid(
    system: System, ended: Callable[[float, float, int], Axis], periodic: Callable[[float, float, int], Axis]
) -> Callable[[int], BoxGrid]:
    """Return the function that gives the grid of so many nodes along each axis."""
    kinds = {axis: periodic if axis in system.periodic else ended for axis in system.space}
    bounds = system.problem.bounds
    return lambda count: BoxGrid({axis: kind(*bounds[axis], count) for axis, kind in kinds.items()})
