"""Systems in a few words, and how far a method is from their exact solutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

from sharp.problems import parse_problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.method import Deadline, NumericalMethod
from sharp.solvers.sample_points import interior_points
from sharp.solvers.system import FirstOrderSystem, system_of

Exact = Callable[..., Any]

DISK = {"type": "disk", "radius": 1}
ANNULUS = {"type": "annulus", "inner": 1, "outer": 2}
L_SHAPE = {"type": "polygon", "vertices": [[0, 0], [1, 0], [1, 1], [-1, 1], [-1, -1], [0, -1]]}
TRIANGLE = {"type": "polygon", "vertices": [[0, 0], [1, 0], [0.5, 3**0.5 / 2]]}
SQUARE = {"type": "box", "bounds": {"x": [0, 1], "y": [0, 1]}}


def dirichlet(value: str, where: str = "all", field: str = "u") -> dict[str, str]:
    return {"where": where, "type": "dirichlet", "field": field, "value": value}


def neumann(value: str, where: str = "all", field: str = "u") -> dict[str, str]:
    return {"where": where, "type": "neumann", "field": field, "value": value}


def robin(a: str, b: str, value: str, where: str = "all", field: str = "u") -> dict[str, str]:
    return {"where": where, "type": "robin", "field": field, "a": a, "b": b, "value": value}


def periodic(*axes: str) -> list[dict[str, str]]:
    return [{"type": "periodic", "axis": axis} for axis in axes]


def steady(
    equations: str | list[str],
    domain: dict[str, Any],
    *boundary: dict[str, str],
    space: str = "xy",
    fields: str = "u",
    **more: Any,
) -> FirstOrderSystem:
    """The system of a steady problem; `space` and `fields` are single letters."""
    given = {
        "pde_spec": 1,
        "id": "test",
        "title": "Test",
        "coordinates": {"space": list(space), **more.pop("coordinates", {})},
        "fields": list(fields),
        "equations": [equations] if isinstance(equations, str) else equations,
        "domain": domain,
        "boundary": list(boundary),
        **more,
    }
    return system_of(parse_problem(yaml.safe_dump(given, sort_keys=False), "test.yaml"))


def moving(
    equations: str | list[str],
    domain: dict[str, Any],
    *boundary: dict[str, str],
    until: float,
    initial: dict[str, str],
    **more: Any,
) -> FirstOrderSystem:
    """The system of a problem that starts at t = 0."""
    clock = {"coordinates": {"time": "t"}, "time": [0, until], "initial": initial}
    return steady(equations, domain, *boundary, **clock, **more)


def solved(
    method: NumericalMethod, system: FirstOrderSystem, resolution: int, accuracy: float = 1e-9
) -> DiscreteSolution:
    assert method.unsupported_reason(system) is None
    return method.solve(system, resolution, accuracy, Deadline.within(100))


def error(solution: DiscreteSolution, system: FirstOrderSystem, exact: Exact, time: float = 0.0) -> float:
    """The largest difference from an exact solution (x, y, …[, t]) -> u at points of the domain."""
    points = interior_points(system.problem, 200)
    late = () if system.steady else (time,)
    return float(np.max(np.abs(solution.at(points, time) - exact(*points.T, *late))))
