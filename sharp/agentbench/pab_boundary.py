"""The boundary conditions of pde-agent-bench as those of a specification."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sharp.agentbench.pab_expressions import read, write
from sharp.agentbench.pab_form import Unfit
from sharp.problems.wording import clip

_VALUES = ("dirichlet", "neumann")


def conditions(
    given: Mapping[str, Any],
    domain: Mapping[str, Any],
    fields: Sequence[str],
    coordinates: Sequence[str],
    exact: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """Return the conditions of a case; raises `Unfit` for kinds and places that cannot be said.

    `exact` has the exact solution of each field, for which `u` stands as a value, and is empty where there is none.
    Fields after the first, which the case does not name, have their exact values or 0 where the first one is given.
    """
    unknown = sorted(given.keys() - {*_VALUES, "periodic"})
    if unknown:
        raise Unfit("a boundary condition of another kind", ", ".join(map(clip, unknown)))
    found: list[dict[str, Any]] = [{"type": "periodic", "axis": axis} for axis in _axes(given, domain)]
    for kind in _VALUES:
        for entry in _entries(given, kind):
            for where in _places(entry, domain):
                found += _on(kind, where, entry.get("value"), fields, coordinates, exact)
    return found


def _axes(given: Mapping[str, Any], domain: Mapping[str, Any]) -> list[str]:
    axes = [axis for entry in _entries(given, "periodic") for axis in _listed(entry.get("on"))]
    if not all(axis in domain.get("bounds", ()) for axis in axes):
        raise Unfit("a boundary condition of another kind", f"periodic on {clip(', '.join(axes))}")
    return axes


def _entries(given: Mapping[str, Any], kind: str) -> list[Mapping[str, Any]]:
    entries = given.get(kind) or []
    entries = [entries] if isinstance(entries, Mapping) else entries
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise Unfit("not of the form of a case", f"bc.{kind}: expected mappings of on and value")
    return entries


def _places(entry: Mapping[str, Any], domain: Mapping[str, Any]) -> Iterator[str]:
    """Yield the places of an entry as in `where`: `all`, or `x = 0` for x0, the low end of an axis."""
    ends = {
        f"{axis}{index}": f"{axis} = {end:g}"
        for axis, pair in domain.get("bounds", {}).items()
        for index, end in enumerate(pair)
    }
    for place in _listed(entry.get("on", "all")):
        if place != "all" and place not in ends:
            raise Unfit("a condition on an unknown part of the boundary", clip(place))
        yield ends.get(place, place)


def _listed(value: Any) -> list[str]:
    return [str(one) for one in value] if isinstance(value, list) else [str(value)]


def _on(
    kind: str,
    where: str,
    value: Any,
    fields: Sequence[str],
    coordinates: Sequence[str],
    exact: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the conditions on all fields at one place."""
    if kind != "dirichlet" and len(fields) > 1:
        raise Unfit("a boundary condition of another kind", f"{kind} for an equation of fourth order")
    known = value == "u" and kind == "dirichlet" and exact
    first = exact[fields[0]] if known else read(value, coordinates, f"the {kind} value")
    values = {fields[0]: first, **{field: exact.get(field, 0) for field in fields[1:]}}
    for field, expression in values.items():
        yield {"where": where, "type": kind, "field": field, "value": write(expression)}
