"""Where thin layers form that come from the equations and not from their data: at ends, and where transport turns.

A solution of a*u'' + b*u' + c*u = f with a small factor a has a layer of the width |a/b| at the end that transport
leads to, of sqrt(|a/c|) at both ends where c damps, and of sqrt(a/b') where b changes sign and transport meets
(H.-G. Roos, M. Stynes and L. Tobiska, Robust Numerical Methods for Singularly Perturbed Differential Equations, 2008,
part I).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from sharp.problems import Problem, compile_expressions
from sharp.solvers.grid import Array
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem, system_of

# Layers below this share of the domain are looked for, at so many places along an axis; others are not narrow.
_THIN, _PLACES = 0.005, 513
# The other coordinates are at this share of their interval meanwhile.
_BESIDE = 0.3719


@lru_cache(maxsize=64)
def layer_places(problem: Problem, axis: str) -> tuple[tuple[float, float], ...]:
    """Return the places of thin layers along an axis of a linear problem, with their widths, ascending."""
    try:
        system = system_of(problem)
    except UnsupportedProblem:
        return ()
    if not system.linear or axis in system.periodic:
        return ()
    low, high = problem.bounds[axis]
    found: dict[float, float] = {}
    for index in range(len(system.components)):
        for place, width in _of_component(system, index, axis):
            if width < _THIN * (high - low):
                found[place] = min(width, found.get(place, np.inf))
    return tuple(sorted(found.items()))


def _of_component(system: FirstOrderSystem, index: int, axis: str) -> Iterator[tuple[float, float]]:
    places, (damping, transport, diffusion) = _along(system, index, axis)
    with np.errstate(all="ignore"):
        damped = np.sqrt(np.where(diffusion * damping < 0, -diffusion / damping, np.inf))
        carried = diffusion / transport
    for end, towards in ((0, 1.0), (-1, -1.0)):
        # What is left of a layer a distance s from the end falls like exp(-s*b/a).
        if np.isfinite(carried[end]) and towards * carried[end] > 0:
            yield float(places[end]), abs(float(carried[end]))
        if 0 < damped[end] < np.inf:
            yield float(places[end]), float(damped[end])
    ratio = np.where(diffusion != 0, transport / np.where(diffusion != 0, diffusion, 1.0), 0.0)
    for k in np.flatnonzero((ratio[:-1] <= 0) & (ratio[1:] > 0)):
        slope = (ratio[k + 1] - ratio[k]) / (places[k + 1] - places[k])
        yield float(places[k] - ratio[k] / slope), float(1 / np.sqrt(slope))


def _along(system: FirstOrderSystem, index: int, axis: str) -> tuple[Array, Array]:
    """Return places [k] along an axis, and the factors there [3, k] of a component and its derivatives in its rate."""
    problem, along = system.problem, system.space.index(axis)
    bounds = np.array([problem.bounds[name] for name in system.space])
    points = np.tile(bounds[:, 0] + _BESIDE * np.diff(bounds)[:, 0], (_PLACES, 1))
    points[:, along] = np.linspace(*problem.bounds[axis], _PLACES)
    # The factors of a linear problem hold no field.
    arguments = [*points.T, problem.time[0] if problem.time else 0.0, *np.zeros(len(system.jets))]
    factors = np.zeros((3, _PLACES))
    for (row, column), factor in system.jacobian.items():
        jet = system.jets[column]
        if row == jet.component == index and jet.order == jet.by[along] <= 2:
            with np.errstate(all="ignore"):  # on an axis of symmetry factors are infinite
                (value,) = compile_expressions([factor], system.names)(*arguments)
            factors[jet.order] += np.broadcast_to(value, _PLACES)
    return points[:, along], factors
