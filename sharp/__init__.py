"""Verified numerical solutions of partial differential equations, and solver programs written by language models.

    >>> import sharp
    >>> problem = sharp.load_problem("heat-rod-two-ends")
    >>> solution = sharp.solve(problem, accuracy=1e-6)
    >>> solution.verdict.status, solution.error < 1e-6
    ('verified', True)
    >>> solution([0.1, 0.2], t=600.0).shape
    (2,)
    >>> guess = sharp.verify(problem, lambda x, t: 0 * x)
    >>> guess.status
    'failed'

`evaluate`, `run`, `resume`, `replay` and `compare` are for solver programs. docs/guides/python.md shows each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sharp.version import __version__

if TYPE_CHECKING:
    from sharp.api import Run, compare, evaluate, load_problem, replay, resume, run, solve, verify
    from sharp.evaluation import Evaluation
    from sharp.problems import Problem
    from sharp.solvers import Solution, Verdict

__all__ = [
    "Evaluation",
    "Problem",
    "Run",
    "Solution",
    "Verdict",
    "__version__",
    "compare",
    "evaluate",
    "load_problem",
    "replay",
    "resume",
    "run",
    "solve",
    "verify",
]

# Where the face is defined. Modules are loaded when a name is first used: `import sharp` itself loads nothing heavy.
_HOMES = {
    "Evaluation": "sharp.evaluation.protocol",
    "Problem": "sharp.problems.problem",
    "Solution": "sharp.solvers.solution",
    "Verdict": "sharp.solvers.verification",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES.get(name, "sharp.api")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
