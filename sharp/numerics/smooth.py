"""Smooth problems on nested grids: what orders of accuracy are measured on (requirement A18).

Each family has a few fixed functions, analytic and periodic where the problem is, which are evaluated exactly at
the points of every grid. The initial conditions of the data sets will not do: some are folded or cut out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.evaluation.datasets import Inputs, Truth, uniform_points
from sharp.numerics.fast_poisson import solve_dirichlet
from sharp.numerics.initial import Evaluate
from sharp.numerics.reference import family_module
from sharp.numerics.spectral import relative_l2
from sharp.problems.problem import Problem

Array = NDArray[np.float64]

CELLS = (64, 128, 256, 512, 1024)
NODES = (17, 33, 65, 129, 257)


@dataclass(frozen=True)
class Smooth:
    """Functions of the place s in [0, 1] by field, [m] -> [n, m] (in two dimensions [n, m, m]), and a duration.

    `duration` gives the time over which the solution moves by many cells and yet keeps its smoothness.
    """

    fields: Mapping[str, Callable[[Array], Array]]
    duration: Callable[[Problem], float] = lambda _: 0.0
    grid: Literal["cells", "nodes"] = "cells"


def resolutions(problem: Problem) -> tuple[int, ...]:
    """Return the points per direction of nested grids, coarse to fine; the spacing halves from one to the next."""
    return NODES if problem.grid.kind == "nodes" else CELLS


def has_smooth_inputs(problem: Problem) -> bool:
    """Whether smooth inputs are known for the problem's family and grid."""
    smooth = _FAMILIES.get(problem.family)
    return smooth is not None and smooth.grid == problem.grid.kind


def smooth_inputs(problem: Problem, points: int) -> Inputs:
    """Return the smooth inputs on one grid, in float64; raises `DataError` for a family without any."""
    x = uniform_points(problem, problem.space[0], points)
    return Inputs(smooth_functions(problem)(x), _times(problem), x)


def smooth_functions(problem: Problem) -> Evaluate:
    """Return the function that gives `{port: [n, m]}` at points [m], in two dimensions `{port: [n, m, m]}`.

    Raises `DataError` for a family without any.
    """
    low, high = problem.bounds[problem.space[0]]
    fields = _smooth(problem).fields

    def evaluate(points: Array) -> dict[str, Array]:
        place = (points - low) / (high - low)
        return {port.name: fields[port.field](place) for port in problem.interface.inputs}

    return evaluate


def smooth_truth(problem: Problem, points: int) -> Truth:
    """Return the solution for the smooth inputs at the points of one grid, and its error (about 1e-5 at most).

    Raises `DataError` for a family without any.
    """
    given = smooth_inputs(problem, points)
    if problem.family == "darcy-2d":
        return _smooth_flow(problem, points)
    truth = family_module(problem).solve_truth(
        problem, given.arrays, given.t, evaluate=smooth_functions(problem)
    )
    assert isinstance(truth, Truth)
    return truth


def _smooth_flow(problem: Problem, points: int) -> Truth:
    """Solve Darcy flow by five-point differences on two finer grids, and extrapolate (second order).

    The truth of data sets takes the coefficient for constant around each node; this one is not.
    """
    load = problem.parameters["beta"] * _length(problem) ** 2
    coarse, fine = (_five_point(points - 1, refinement, load) for refinement in (8, 16))
    limit = fine + (fine - coarse) / 3
    return Truth({problem.interface.returns[0].name: limit}, relative_l2(fine, limit))


def _five_point(intervals: int, refinement: int, load: float) -> Array:
    """Return u at the nodes of a grid [n, m, m], solved on a finer one."""
    n = intervals * refinement
    right = np.full((n - 1, n - 1), load / n**2)
    # Every second of these points is a node, those between are where the coefficients of edges are taken.
    a = _permeability(np.linspace(0, 1, 2 * n + 1))
    solved = [solve_dirichlet(one[1::2, 2:-1:2], one[2:-1:2, 1::2], right) for one in a]
    return np.stack(solved)[:, ::refinement, ::refinement]


def _times(problem: Problem) -> Array | None:
    """Return the start, the middle and the end."""
    if problem.time is None:
        return None
    start = problem.time[0]
    return np.linspace(start, start + _smooth(problem).duration(problem), 3)


def _smooth(problem: Problem) -> Smooth:
    if problem.family not in _FAMILIES:
        raise DataError(
            f"{problem.id}: no smooth solutions are known for the family {problem.family}; "
            f"those with an order of accuracy to measure are {', '.join(_FAMILIES)}"
        )
    smooth = _FAMILIES[problem.family]
    if problem.grid.kind != smooth.grid:
        raise DataError(
            f"{problem.id}: orders of accuracy of the family {problem.family} are measured on grids of "
            f"{smooth.grid}, found {problem.grid.kind}"
        )
    return smooth


def _waves(s: Array) -> Array:
    """Return four functions of period 1, with values about 0 and slopes up to 2 pi.

    The coefficients of the last decay slowest, as 0.325^k: 32 waves resolve it to round-off.
    """
    first = 2 * np.pi * s
    return np.stack(
        [
            np.sin(first),
            (np.sin(first + 1) + np.cos(2 * first) / 2) / 2,
            (np.exp(np.cos(first - 2)) - 1.27) / 1.5,
            (1 / (1.7 + np.cos(first + 0.5)) - 0.73) / 0.8,
        ]
    )


def _about(mean: float, amplitude: float, shift: float = 0.0) -> Callable[[Array], Array]:
    return lambda s: mean + amplitude * _waves(s + shift)


def _permeability(s: Array) -> Array:
    """Return two coefficients between 3 and 12, as those of the data, at the points (s_i, s_j)."""
    x, y = s[:, None], s[None, :]
    return np.stack(
        [6 + 2 * np.cos(np.pi * x) * np.cos(2 * np.pi * y), 6 * np.exp(0.6 * np.sin(3 * x - 2 * y))]
    )


def _length(problem: Problem) -> float:
    low, high = problem.bounds[problem.space[0]]
    return high - low


def _advected(problem: Problem) -> float:
    """Return the time of a shift by L/6.

    A shift of a third of a cell (or two thirds) on every grid: none of whole cells, where interpolation is exact.
    """
    return _length(problem) / (6 * abs(problem.parameters["beta"]))


def _diffused(problem: Problem) -> float:
    """Return the time in which the longest wave decays to 1/50, or in which u reacts if that is shorter."""
    return min(_length(problem) ** 2 / (10 * problem.parameters["nu"]), 1 / problem.parameters["rho"])


_FAMILIES: Mapping[str, Smooth] = {
    "advection": Smooth({"u": _about(1.0, 0.5)}, _advected),
    # u > 0 has no sonic points, where first-order fluxes have kinks; a shock forms at 0.64 L or later.
    "burgers": Smooth({"u": _about(0.5, 0.25)}, lambda problem: 0.25 * _length(problem)),
    "reaction-diffusion": Smooth({"u": _about(0.5, 0.3)}, _diffused),
    # Sound travels about an eighth of the period, and viscosity of the shipped problem halves the velocity.
    "navier-stokes-1d": Smooth(
        {"Vx": _about(0.0, 0.2), "density": _about(1.0, 0.2, 0.3), "pressure": _about(1.0, 0.2, 0.6)},
        lambda problem: 0.1 * _length(problem),
    ),
    "darcy-2d": Smooth({"a": _permeability}, grid="nodes"),
}
