"""Reading the description of a problem in a prompt back into the form of a specification."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sharp.errors import SpecificationError
from sharp.problems.grammar import Scope, evaluate_tree, parse_tree
from sharp.problems.render import SAMPLED

Document = dict[str, Any]

# Descriptions give the ends of axes to so many digits; ends that were written as multiples of pi are often among these.
ROUNDED = 6
MULTIPLES = ("pi", "2*pi", "4*pi", "pi/2", "-pi", "-2*pi", "-pi/2")

_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
_SPACE = re.compile(r"^- Space: `(\w+)` from (\S+) to (\S+)\.$", re.MULTILINE)
_TIME = re.compile(r"^- Time: `(\w+)` from (\S+) to (\S+)\.$", re.MULTILINE)
_PARAMETER = re.compile(
    r"^- Parameter: `(\w+)`(?: = (.+))? = (\S+?)(?: [^=]+)? \((?:passed|a fixed)", re.MULTILINE
)
_GIVEN = re.compile(r"^- (Coefficient|Initial state): `(\w+)` is (.+)\.$", re.MULTILINE)
_BOUNDARY = re.compile(r"^- Boundary: (.+)\.$", re.MULTILINE)
_CALL = re.compile(r"^`(\w+)\(([^)\n]*)\)` returns `([^`\n]+)`\.$", re.MULTILINE)
_PORT = re.compile(
    r"^- (?:(?P<out>returned) )?`(?P<name>\w+)`, array of shape \[batch, (?P<axes>[^\]]+)\]: "
    r"(?:the coefficient )?`(?P<field>\w+)` ",
    re.MULTILINE,
)
_TIMES = re.compile(r"^- `(\w+)`, array of shape \[T\+1\]:", re.MULTILINE)
_SIZES = re.compile(
    r"^The data have ([\dx ]+) grid points \([^)]*\)(?: and T\+1 = (\d+) output times)?", re.MULTILINE
)
_WHERE = r"(?: at `(?P<where>[^`]+)`(?:, where d .*)?| (?P<all>on the whole boundary)(?:, where d .*)?)"
_CONDITIONS: Mapping[str, re.Pattern[str]] = {
    "periodic": re.compile(r"everything is periodic along `(?P<axis>\w+)`"),
    "robin": re.compile(r"`\((?P<a>.+)\)\*(?P<field>\w+) \+ \((?P<b>.+)\)\*d = (?P<value>[^`]+)`" + _WHERE),
    "dirichlet": re.compile(r"`(?P<field>\w+) = (?P<value>[^`]+)`" + _WHERE),
    "neumann": re.compile(
        r"the derivative of `(?P<field>\w+)` along the outward normal is `(?P<value>[^`]+)`" + _WHERE
    ),
}


def document(equations: str, description: str) -> str:
    """Return what a description says as the text of a specification, in JSON; empty where it cannot be read.

    Whether it states a problem that is complete and consistent is left to the reader of specifications.
    """
    call, sizes = _CALL.search(description), _SIZES.search(description)
    written = _BOUNDARY.findall(description)
    conditions = [condition for text in written if (condition := _condition(text))]
    if call is None or sizes is None or len(conditions) < len(written) or not _SPACE.search(description):
        return ""
    ports = list(_PORT.finditer(description))
    times = _TIME.search(description)
    found: Document = {
        "pde_spec": 1,
        "id": "described",
        "title": ([title[1] for title in _TITLE.finditer(description)] or ["A problem"])[-1],
        "coordinates": {"space": [axis for axis, _, _ in _SPACE.findall(description)]},
        "fields": [port["field"] for port in ports if port["out"]],
        "coefficients": _given("Coefficient", description),
        "parameters": {name: written or value for name, written, value in _PARAMETER.findall(description)},
        "equations": equations.strip().splitlines(),
        "domain": {"type": "box", "bounds": _bounds(description, conditions)},
        "initial": _given("Initial state", description),
        "boundary": conditions,
        "outputs": _outputs(description, sizes),
        "interface": _interface(description, call, ports),
        "accept": ["corner-jump"],
    }
    if times:
        found["coordinates"]["time"] = times[1]
        found["time"] = [times[2], times[3]]
    return json.dumps(found)


def _given(kind: str, description: str) -> dict[str, Any]:
    families = {words: name for name, words in SAMPLED.items()}
    return {
        name: {"family": families[text]} if text in families else text.strip("`")
        for found, name, text in _GIVEN.findall(description)
        if found == kind
    }


def _condition(text: str) -> dict[str, str]:
    """Return a boundary condition, empty if it is of another kind."""
    for kind, pattern in _CONDITIONS.items():
        if found := pattern.fullmatch(text):
            parts = {name: part for name, part in found.groupdict().items() if part is not None}
            whole = {"where": "all"} if parts.pop("all", None) else {}
            return {"type": kind, **whole, **parts}
    return {}


def _bounds(description: str, conditions: Sequence[Mapping[str, str]]) -> dict[str, list[str]]:
    values = {name: float(value) for name, _, value in _PARAMETER.findall(description)}
    places = [str(condition.get("where", "")).partition("=") for condition in conditions]
    named = [(axis.strip(), place.strip()) for axis, _, place in places if place]
    return {
        axis: [_exact(end, [place for other, place in named if other == axis], values) for end in (low, high)]
        for axis, low, high in _SPACE.findall(description)
    }


def _exact(end: str, places: Sequence[str], values: Mapping[str, float]) -> str:
    """Return the end of an axis as it was written, where it was rounded: a place, a parameter or a multiple of pi."""
    if len(re.sub(r"e.*|\D", "", end).strip("0")) < ROUNDED:
        return end
    scope = Scope.of(values)
    for text in (*places, *values, *MULTIPLES):
        with suppress(SpecificationError):
            if f"{evaluate_tree(parse_tree(text, scope), values):g}" == end:
                return text
    return end


def _outputs(description: str, sizes: re.Match[str]) -> Document:
    axes = [axis for axis, _, _ in _SPACE.findall(description)]
    grid = "cells" if "the points are the centres of" in description else "nodes"
    counts = [int(count) for count in sizes[1].split(" x ")]
    return {
        "grid": grid,
        "points": dict(zip(axes, counts, strict=False)),
        **({"times": int(sizes[2])} if sizes[2] else {}),
    }


def _interface(description: str, call: re.Match[str], ports: list[re.Match[str]]) -> Document:
    times = _TIMES.search(description)
    arguments = [argument.strip() for argument in call[2].split(",")]
    arrays = {port["name"] for port in ports if not port["out"]}
    return {
        "function": call[1],
        "inputs": [_port(port) for port in ports if not port["out"]],
        "parameters": [name for name in arguments if name not in arrays and not (times and name == times[1])],
        "returns": [_port(port) for port in ports if port["out"]],
        **({"coordinates": times[1]} if times else {}),
    }


def _port(found: re.Match[str]) -> Document:
    axes = [axis.strip() for axis in found["axes"].split(",")]
    return {"name": found["name"], "field": found["field"], "shape": ["batch", *axes]}
