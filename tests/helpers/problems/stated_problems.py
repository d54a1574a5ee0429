"""Problems of no known family in a few words."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from sharp.problems import Problem, parse_problem


def walls(*axes: str, kind: str = "dirichlet", fields: Sequence[str] = ("u",)) -> list[dict[str, Any]]:
    """Return conditions of zero at both ends, 0 and 1, of axes."""
    return [
        {"type": kind, "where": f"{axis} = {end}", "field": field, "value": 0}
        for axis in axes
        for end in (0, 1)
        for field in fields
    ]


def periodic(*axes: str) -> list[dict[str, str]]:
    """Return the conditions that everything repeats along axes."""
    return [{"type": "periodic", "axis": axis} for axis in axes]


def stated(equations: Sequence[str], points: Mapping[str, int], **more: Any) -> Problem:
    """Return a problem on the unit interval, square or cube with nodes; `None` leaves a key out."""
    end = more.pop("end", 0.1)
    written: dict[str, Any] = {
        "pde_spec": 1,
        "id": "made-up",
        "title": "A made-up problem",
        "coordinates": {"space": list(points), "time": "t"},
        "fields": ["u"],
        "equations": list(equations),
        "domain": {"type": "box", "bounds": {axis: [0, 1] for axis in points}},
        "time": [0, end],
        "boundary": walls(*points),
        "outputs": {"grid": "nodes", "points": dict(points), "times": 3},
        **more,
    }
    return parse_problem(
        json.dumps({key: value for key, value in written.items() if value is not None}), "made-up"
    )


def heat(points: int = 21, equation: str = "u_t = u_xx/5", **more: Any) -> Problem:
    """Return the heat equation, or another one, on a rod with cold ends."""
    return stated([equation], {"x": points}, **{"initial": {"u": "sin(pi*x)"}, **more})
