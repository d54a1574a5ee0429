"""A plan for people and for programs: the cells, the graph of what they share, what it will take."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from sharp.report.text import plural
from sharp.sweeps.estimate import SweepEstimate, estimate_in_words
from sharp.sweeps.plan import SweepPlan, counts

_SHOWN = 6
_LINES = 30
_GIVEN = {
    "best-of-n": "its candidates and their debugging",
    "genesis": "its analysis and candidates",
    "analysis": "its analysis",
}


def plan_in_words(plan: SweepPlan, guess: SweepEstimate) -> str:
    """Return the plan as text."""
    states = ", ".join(f"{count} {state}" for state, count in counts(plan).items())
    gone = len(plan.begun - plan.by_id.keys())
    lines = [f"Sweep {plan.sweep.form.name} in {plan.folder}: {len(plan.cells)} cells ({states})"]
    if gone:
        lines.append(
            f"  besides {plural(gone, 'run')} of cells that are no longer in the file, nor in the table"
        )
    if plan.left:
        lines += [_shared(plan), *(f"  {line}" for line in _some(_graph(plan)))]
        lines += estimate_in_words(guess)
    return "\n".join(lines)


def plan_as_json(plan: SweepPlan, guess: SweepEstimate) -> dict[str, Any]:
    """Return the plan as plain values."""
    cells = [
        {
            "id": cell.id,
            "values": dict(cell.values),
            "state": plan.states[cell.id],
            "takes": _share(plan, cell.id),
        }
        for cell in plan.cells
    ]
    return {
        "name": plan.sweep.form.name,
        "folder": str(plan.folder),
        "states": counts(plan),
        "cells": cells,
        "estimate": guess.to_json(),
    }


def _shared(plan: SweepPlan) -> str:
    taking = sum(cell.id in plan.shares for cell in plan.left)
    return f"Graph: {taking} of {len(plan.left)} cells take an analysis or candidates from another"


def _some(lines: list[str]) -> list[str]:
    if len(lines) <= _LINES:
        return lines
    return [*lines[:_LINES], f"and {len(lines) - _LINES} more lines; --json has all"]


def _share(plan: SweepPlan, cell: str) -> dict[str, str] | None:
    share = plan.shares.get(cell)
    return None if share is None else {"from": share.donor, "stage": share.stage}


def _graph(plan: SweepPlan) -> list[str]:
    """Return a line for each cell that pays for a prefix, and below it a line for each stage that others take."""
    takers: dict[tuple[str, str], list[str]] = defaultdict(list)
    for cell, share in plan.shares.items():
        takers[share.donor, share.stage].append(cell)
    lines: list[str] = []
    for name in (node.id for node in plan.graph.order):
        given = [(stage, takers[name, stage]) for stage in _GIVEN if takers[name, stage]]
        if given or (name in plan.by_id and name not in plan.shares and plan.states[name] != "finished"):
            lines.append(f"{name}: {_pays(plan, name)}")
        for stage, cells in given:
            lines.append(f"  gives {_GIVEN[stage]} to {_listed(cells)}")
    return lines


def _pays(plan: SweepPlan, name: str) -> str:
    share = plan.shares.get(name)
    if share is not None:
        return f"takes {share.stage} from {share.donor}"
    if name not in plan.by_id:
        return "no longer in the file"
    return "pays for all of its own" if plan.states[name] == "new" else plan.states[name]


def _listed(cells: list[str]) -> str:
    more = f" and {len(cells) - _SHOWN} more" if len(cells) > _SHOWN else ""
    return ", ".join(cells[:_SHOWN]) + more
