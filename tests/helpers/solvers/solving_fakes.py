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

HEAT = """
pde_spec: 1
id: rod
title: A rod
coordinates: {space: [x], time: t}
fields: [u]
parameters: {alpha: 0.1}
equations: [u_t = alpha*u_xx]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {u: sin(pi*x) + 2*x}
boundary:
  - {where: x = 0, type: dirichlet, field: u, value: 0}
  - {where: x = 1, type: dirichlet, field: u, value: 2}
reference: {kind: exact, value: {u: exp(-alpha*pi**2*t)*sin(pi*x) + 2*x}}
accuracy: 1e-6
"""

ROD = """
pde_spec: 1
id: rod
title: A rod
coordinates: {space: [x], time: t}
fields: [u]
units: {x: m, t: s, u: K}
parameters: {k: {value: 0.1, unit: m**2/s}}
equations: [u_t = k*u_xx]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {u: sin(pi*x)}
boundary: [{where: all, type: dirichlet, field: u, value: 0}]
outputs: {grid: nodes, points: {x: 11}, times: 5}
"""

WAVE = """
pde_spec: 1
id: string
title: A string
coordinates: {space: [x], time: t}
fields: [u]
parameters: {c: 2}
equations: [u_tt = c**2*u_xx]
domain: {type: box, bounds: {x: [0, 1]}}
time: [0, 1]
initial: {u: "0", u_t: 2*pi*c*sin(2*pi*x)}
boundary:
  - {where: all, type: dirichlet, field: u, value: 0}
reference: {kind: exact, value: {u: sin(2*pi*c*t)*sin(2*pi*x)}}
"""

DISK = """
pde_spec: 1
id: disk
title: A disk
coordinates: {space: [x, y]}
fields: [u]
equations: ["-lap(u) = 4"]
domain: {type: disk, radius: 1}
boundary:
  - {where: outer, type: robin, field: u, a: 1, b: 1, value: -2}
reference: {kind: exact, value: {u: 1 - x**2 - y**2}}
"""

PLATE = """
pde_spec: 1
id: plate
title: A plate with insulated edges
coordinates: {space: [x, y]}
fields: [u]
equations: ["lap(u) = -2*pi**2*cos(pi*x)*cos(pi*y)"]
domain: {type: box, bounds: {x: [0, 1], y: [0, 1]}}
boundary:
  - {where: all, type: neumann, field: u, value: 0}
mean: {u: 3}
reference: {kind: exact, value: {u: 3 + cos(pi*x)*cos(pi*y)}}
"""

TRIANGLE = """
pde_spec: 1
id: triangle
title: A triangle
coordinates: {space: [x, y]}
fields: [u]
equations: ["lap(u) = 0"]
domain: {type: polygon, vertices: [[0, 0], [2, 0], [0, 1]]}
boundary:
  - {where: edge 0, type: neumann, field: u, value: -x}
  - {where: edge 1, type: dirichlet, field: u, value: x*y}
  - {where: edge 2, type: dirichlet, field: u, value: x*y}
reference: {kind: exact, value: {u: x*y}}
"""

MODES = """
pde_spec: 1
id: modes
title: Modes of a string
coordinates: {space: [x]}
fields: [u]
equations: [-u_xx = mu*u]
eigenvalue: {name: mu, count: 2}
domain: {type: box, bounds: {x: [0, 1]}}
boundary:
  - {where: all, type: dirichlet, field: u, value: 0}
reference: {kind: exact, eigenvalues: [pi**2, 4*pi**2]}
"""


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
