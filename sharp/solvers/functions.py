"""Functions that a specification gives, to be computed at points and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sharp.problems import Problem, compile_expressions, to_sympy
from sharp.solvers.grid import Array


def compile_function(problem: Problem, text: str) -> Callable[..., Array]:
    """Return an expression of the specification as a function of points [m, d] and times [k] with values [k, m].

    One of a condition may depend on fields: their values there [fields, k, m] are the third argument.
    """
    times = [problem.time_name] if problem.time_name else []
    names = [*problem.space, *times, *problem.parameters, *problem.fields]
    program = compile_expressions([to_sympy(problem.tree(text))], names)
    unknown = [np.nan] * len(problem.fields)

    def values(points: Array, moments: Array, fields: Sequence[Array] | Array = ()) -> Array:
        late = [moments[:, None]] if times else []
        here = fields if len(fields) else unknown
        with np.errstate(all="ignore"):
            (value,) = program(*points.T, *late, *problem.parameters.values(), *here)
        return np.broadcast_to(np.asarray(value, dtype=float), (len(moments), len(points)))

    return values
