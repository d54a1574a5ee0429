"""Problems in boxes from a few words, and the error of a method that solves them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sharp.problems import Problem, parse_problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.exact import exact_errors
from sharp.solvers.method import Deadline
from sharp.solvers.methods import load_method
from sharp.solvers.system import system_of


def boxed(
    equations: Sequence[str],
    bounds: Mapping[str, Sequence[float | str]],
    boundary: Sequence[str],
    exact: Mapping[str, str] | None = None,
    **more: Any,
) -> Problem:
    """Return a problem; a boundary condition is written `x = 0: dirichlet u = 1`, `robin 2 1 u = 0` or `periodic x`."""
    written = {
        "pde_spec": 1,
        "id": "boxed",
        "title": "A problem in a box",
        "coordinates": {"space": list(bounds), **({"time": "t"} if "time" in more else {})},
        "fields": list(more.pop("fields", ["u"])),
        "equations": list(equations),
        "domain": {"type": "box", "bounds": {axis: list(ends) for axis, ends in bounds.items()}},
        "boundary": [_condition(text) for text in boundary],
        **more,
    }
    if exact:
        written["reference"] = {"kind": "exact", "value": dict(exact)}
    return parse_problem(json.dumps(written), "boxed")


def _condition(text: str) -> dict[str, Any]:
    if text.startswith("periodic"):
        return {"type": "periodic", "axis": text.split()[1]}
    where, _, rest = text.partition(":")
    left, _, value = rest.partition("=")
    kind, *numbers, field = left.split()
    keys = {"robin": ("a", "b"), "derivative": ("order",)}.get(kind, ())
    extra = {
        key: int(number) if key == "order" else number for key, number in zip(keys, numbers, strict=True)
    }
    return {"where": where, "type": kind, "field": field, "value": value.strip(), **extra}


def solved(problem: Problem, method: str, resolution: int, accuracy: float = 1e-8) -> DiscreteSolution:
    """Return the solution by a method at a resolution."""
    return load_method(method).solve(system_of(problem), resolution, accuracy, Deadline.within(60))


def error(problem: Problem, method: str, resolution: int, accuracy: float = 1e-8) -> float:
    """Return the largest error of a method, relative to the largest value of the exact solution."""
    errors = exact_errors(problem, solved(problem, method, resolution, accuracy))
    assert errors is not None
    return errors.maximum
