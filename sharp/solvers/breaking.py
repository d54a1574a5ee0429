"""When waves of a smooth initial state break, so that jumps form."""

from __future__ import annotations

from functools import lru_cache
from math import inf

import numpy as np

from sharp.problems import BoxDomain, Problem, compile_expressions
from sharp.solvers.conservation import conservation_law_of
from sharp.solvers.system import UnsupportedProblem, system_of

# Points along each axis, by dimension, at which the initial state is looked at.
_POINTS = {1: 4000, 2: 160, 3: 40}


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
