"""Problems with known solutions, and a method that is as wrong as a test wants it to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from sharp.problems import Problem, parse_problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.functions import compile_function
from sharp.solvers.method import Deadline, SolverFailed, TimeLimitExceeded
from sharp.solvers.system import FirstOrderSystem
from tests.helpers.problems.specifications import specification

HEAT = specification("heated-rod") + "accuracy: 1e-6\n"
WAVE = specification("string")
DISK = specification("disk")
PLATE = specification("insulated-plate")
TRIANGLE = specification("triangle")
MODES = specification(
    "modes",
    eigenvalue={"name": "mu", "count": 2},
    reference={"kind": "exact", "eigenvalues": ["pi**2", "4*pi**2"]},
)


def problem_of(text: str, **changes: str) -> Problem:
    """A problem, with pieces of its text replaced: `__` in names stands for blanks."""
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return parse_problem(text, "test.yaml")


def exact_solution(
    problem: Problem, error: float = 0.0, name: str = "exact", resolution: int = 8
) -> DiscreteSolution:
    """The exact solution, with a smooth relative error added."""
    functions = [
        compile_function(problem, problem.specification.reference.value[field]) for field in problem.fields
    ]

    def evaluate(points: np.ndarray, times: np.ndarray) -> np.ndarray:
        values = np.stack([function(points, times) for function in functions])
        return values * (1 + error * np.cos(3 * points.sum(axis=1)) * np.sqrt(2))

    return DiscreteSolution(name, resolution, evaluate, resolution)


@dataclass(frozen=True)
class Invented:
    """Knows the solution, and adds an error that depends on the resolution; None stands for a failure."""

    name: str = "invented"
    error: Callable[[int], float | None] = lambda n: n**-4.0
    sizes: tuple[int, ...] = (8, 16, 32, 64, 128, 256)
    refused: str | None = None

    def unsupported_reason(self, system: FirstOrderSystem) -> str | None:
        return self.refused

    def resolution_sequence(self, system: FirstOrderSystem) -> tuple[int, ...]:
        return self.sizes

    def solve(
        self, system: FirstOrderSystem, resolution: int, accuracy: float, deadline: Deadline
    ) -> DiscreteSolution:
        if deadline.remaining_s < 0:
            raise TimeLimitExceeded("the limit of time was reached")
        error = self.error(resolution)
        if error is None:
            raise SolverFailed("no convergence")
        return exact_solution(system.problem, error, self.name, resolution)


def modes(values: Mapping[int, float], resolution: int = 8) -> DiscreteSolution:
    """Eigenvalues by number, with the first eigenfunction of a string."""
    return DiscreteSolution(
        "exact",
        resolution,
        lambda points, times: np.sin(np.pi * points[:, 0])[None, None].repeat(len(times), axis=1),
        resolution,
        tuple(values.values()),
    )
