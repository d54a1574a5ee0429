"""Realistic mistakes in the answers of the embedded rule-based model, so that correction is exercised end to end.

They are what models are seen to do: a coefficient off by a power of ten, a lost sign, the wrong end of the domain, a
flux for a value, a condition that is forgotten, a tool for another kind of problem, a reply of the wrong form.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

Parameters = dict[str, Any]
Change = Callable[[Parameters, random.Random], None]
"""Changes parameters in place, if there is anything to change."""

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.*(])")


def corrupt_parameters(parameters: Mapping[str, Any], tool: str, rng: random.Random) -> Parameters | None:
    """Return parameters with one mistake that fits the tool, or None where it leaves no room for one."""
    changes = list(_CHANGES.get(tool, ()))
    rng.shuffle(changes)
    for change in changes:
        changed = copy.deepcopy(dict(parameters))
        change(changed, rng)
        if changed != parameters:
            return changed
    return None


def corrupt_plan(steps: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    """Return a plan with one mistake: a condition forgotten, the wrong solving tool, or a result of the wrong kind."""
    return rng.choice([_forget_condition, _solve_otherwise, _wire_wrongly])(copy.deepcopy(steps), rng)


def corrupt_format(text: str, rng: random.Random) -> str:
    """Return an answer that cannot be read: cut off, or without its object."""
    return rng.choice([text[: len(text) // 2], "I have done as you asked."])


def _forget_condition(steps: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    conditions = [
        step for step in steps if step["tool"] in ("define_boundary_condition", "define_initial_condition")
    ]
    forgotten = rng.choice(conditions)["id"] if conditions else ""
    kept = [step for step in steps if step["id"] != forgotten]
    for step in kept:
        for port, given in step["inputs"].items():
            step["inputs"][port] = [source for source in given if source.partition(".")[0] != forgotten]
    return kept


def _solve_otherwise(steps: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    for step in steps:
        if step["tool"].startswith("solve_"):
            others = {"solve_steady", "solve_in_time", "solve_eigenvalues"} - {step["tool"]}
            step["tool"] = rng.choice(sorted(others))
    return steps


def _wire_wrongly(steps: list[dict[str, Any]], rng: random.Random) -> list[dict[str, Any]]:
    step = rng.choice([step for step in steps if step["inputs"]])
    port = rng.choice(sorted(step["inputs"]))
    step["inputs"][port] = [f"{steps[0]['id']}.equations", *step["inputs"][port][1:]]
    return steps


def _scale_number(text: str, rng: random.Random) -> str:
    """Put one number of an expression off by a factor."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    chosen = rng.choice(found)
    factor = rng.choice([10.0, 0.1, 2.0])
    return f"{text[: chosen.start()]}{float(chosen[0]) * factor:g}{text[chosen.end() :]}"


def _scale_parameter(parameters: Parameters, rng: random.Random) -> None:
    if names := sorted(parameters.get("parameters", {})):
        name = rng.choice(names)
        given = parameters["parameters"][name]
        quantity = dict(given) if isinstance(given, Mapping) else {"value": given}
        parameters["parameters"][name] = {**quantity, "value": _scale_number(str(quantity["value"]), rng)}


def _lose_sign(parameters: Parameters, _rng: random.Random) -> None:
    left, _, right = str(parameters["equations"][0]).partition("=")
    other = right.replace("-", "+", 1) if "-" in right else f"-({right.strip()})"
    if right.strip() != "0":
        parameters["equations"] = [f"{left}= {other.strip()}", *parameters["equations"][1:]]


def _move_end(parameters: Parameters, rng: random.Random) -> None:
    if bounds := parameters["domain"].get("bounds"):
        axis = rng.choice(sorted(bounds))
        low, high = bounds[axis]
        bounds[axis] = [low, f"2*({high})"]


def _scale_radius(parameters: Parameters, _rng: random.Random) -> None:
    domain = parameters["domain"]
    if key := next((key for key in ("radius", "outer") if key in domain), None):
        domain[key] = f"2*({domain[key]})"


def _shift_value(parameters: Parameters, rng: random.Random) -> None:
    if text := str(parameters.get("value", "")):
        parameters["value"] = _scale_number(text, rng) if _NUMBER.search(text) else f"2*({text})"


def _flux_for_value(parameters: Parameters, _rng: random.Random) -> None:
    kind = parameters["type"]
    parameters["type"] = {"dirichlet": "neumann", "neumann": "dirichlet"}.get(kind, kind)


def _unknown_key(parameters: Parameters, rng: random.Random) -> None:
    if parameters:
        key = rng.choice(sorted(parameters))
        parameters[f"{key}_value"] = parameters.pop(key)


def _coarse(parameters: Parameters, _rng: random.Random) -> None:
    """Request a grid that is too coarse."""
    parameters["resolution"] = 6


_CHANGES: Mapping[str, tuple[Change, ...]] = {
    "define_equations": (_scale_parameter, _lose_sign, _unknown_key),
    "define_domain": (_move_end, _scale_radius),
    "define_initial_condition": (_shift_value, _unknown_key),
    "define_boundary_condition": (_shift_value, _flux_for_value, _unknown_key),
    "define_mean": (_shift_value,),
    "discretise": (_coarse,),
}


def as_answer(content: Mapping[str, Any], reason: str) -> str:
    """Return an answer of the agreed form."""
    return f"{reason}\n\n```json\n{json.dumps(content, ensure_ascii=False)}\n```\n"
