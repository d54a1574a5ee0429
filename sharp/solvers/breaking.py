"""When waves of a smooth initial state break, so that jumps form, and where nothing smoothes jumps."""

from __future__ import annotations

from functools import lru_cache
from math import inf

import numpy as np

from sharp.problems import BoxDomain, Problem, compile_expressions
from sharp.solvers.conservation import conservation_law_of
from sharp.solvers.grid import Array
from sharp.solvers.system import FirstOrderSystem, UnsupportedProblem, system_of

# Points along each axis, by dimension, at which the initial state is looked at.
_POINTS = {1: 4000, 2: 160, 3: 40}
# States that are tried, and the share of them that shows that a diffusion rests.
_STATES, _RESTS = 2000, 0.01


@lru_cache(maxsize=64)
def breaking_time(problem: Problem) -> float:
    """Return how long after the start waves break, infinity where that is not before the end or not known.

    A wave breaks where it is followed by a faster one of its kind: after 1 / max(-dc/dx), where c is the speed of the
    waves along an axis (G. B. Whitham, Linear and Nonlinear Waves, 1974, sec. 2.1). For systems that is an estimate.
    """
    if problem.time is None or not isinstance(problem.domain, BoxDomain):
        return inf
    try:
        law = conservation_law_of(system_of(problem))
    except UnsupportedProblem:
        return inf
    if law.linear or any(program is not None for program in law.diffusion):
        return inf
    start, end = problem.time
    count = _POINTS[len(problem.space)]
    axes = [np.linspace(low, high, count) for low, high in problem.bounds.values()]
    grids = np.meshgrid(*axes, indexing="ij")
    with np.errstate(all="ignore"):
        state = compile_expressions(law.system.initial, problem.space)(*grids)
        slopes = [0.0]
        for axis, program in enumerate(law.speed):
            if program is not None:
                speeds = [np.broadcast_to(c, grids[0].shape) for c in program(*grids, start, *state)]
                steps = [np.diff(np.sort(np.stack(speeds), axis=0), axis=axis + 1)]
                slopes += [float(np.nanmax(-each, initial=0.0)) / np.diff(axes[axis])[0] for each in steps]
    steepest = max(slopes)
    return 1 / steepest if steepest * (end - start) > 1 else inf


def frozen_diffusion(system: FirstOrderSystem) -> str:
    """Return the fields of a diffusion that vanishes for a range of their values; empty where there is none.

    The enthalpy of what melts is such a field: as long as latent heat is taken up the temperature rests. States are
    those between the extremes of what is given at the start and at the boundary.
    """
    problem = system.problem
    if problem.time is None or not isinstance(problem.domain, BoxDomain):
        return ""
    try:
        law = conservation_law_of(system)
    except UnsupportedProblem:
        return ""
    if not law.potentials:
        return ""
    low, high = _extremes(system)
    states = low[:, None] + (high - low)[:, None] * np.random.default_rng(0).random((len(low), _STATES))
    slopes = compile_expressions(law.frozen, [field.name for field in law.fields])(*states)
    rests = any(np.mean(np.broadcast_to(np.abs(slope), states[0].shape) == 0.0) > _RESTS for slope in slopes)
    held = {symbol for part in law.potentials for symbol in part.free_symbols}
    names = [name for name, field in zip(problem.fields, law.fields, strict=True) if field in held]
    return " and ".join(f"'{name}'" for name in names) if rests else ""


def _extremes(system: FirstOrderSystem) -> tuple[Array, Array]:
    """Return the least and the largest values [fields] that are given at the start and at the boundary."""
    problem = system.problem
    assert problem.time is not None
    count = _POINTS[len(problem.space)]
    axes = [np.linspace(low, high, count) for low, high in problem.bounds.values()]
    grids = [grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")]
    with np.errstate(all="ignore"):
        given = compile_expressions(system.initial, problem.space)(*grids)
        found = [[np.nanmin(values), np.nanmax(values)] for values in given]
        times = np.linspace(*problem.time, grids[0].size)
        for each in system.conditions:
            if set(each.factors) == {0}:
                program = compile_expressions([each.value / each.factors[0]], [*system.space, system.time])
                (values,) = program(*grids, times)
                found[each.component] += [np.nanmin(values), np.nanmax(values)]
    return np.array([min(each) for each in found]), np.array([max(each) for each in found])
