"""Functions that a specification gives, to be computed at points and times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sharp.problems import Problem, compile_expressions, to_sympy
from sharp.solvers.grid import Array


def compile_condition(problem: Problem, text: str) -> Callable[[Array, Array, Array], Array]:
    """Return an expression of a condition as a function of points [m, d], times [k] and fields there [fields, k, m].

    Its values are [k, m].
    """
    times = [problem.time_name] if problem.time_name else []
    names = [*problem.space, *times, *problem.parameters, *problem.fields]
    program = compile_expressions([to_sympy(problem.tree(text))], names)

    def values(points: Array, moments: Array, fields: Array) -> Array:
        late = [moments[:, None]] if times else []
        (value,) = program(*points.T, *late, *problem.parameters.values(), *fields)
        return np.broadcast_to(np.asarray(value, dtype=float), (len(moments), len(points)))

    return values


def compile_function(problem: Problem, text: str) -> Callable[[Array, Array], Array]:
    """Return an expression of the specification as a function of points [m, d] and times [k] with values [k, m]."""
    times = [problem.time_name] if problem.time_name else []
    names = [*problem.space, *times, *problem.parameters]
    program = compile_expressions([to_sympy(problem.tree(text))], names)

    def values(points: Array, moments: Array) -> Array:
        late = [moments[:, None]] if times else []
        (value,) = program(*points.T, *late, *problem.parameters.values())
        return np.broadcast_to(np.asarray(value, dtype=float), (len(moments), len(points)))

    return values
