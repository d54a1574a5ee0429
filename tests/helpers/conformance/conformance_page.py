"""docs/reference/sandbox-tests.md: what came of each program when the suite was last run as a whole."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from hpc.sandbox import limit_keepers
from tests.helpers import ROOT
from tests.helpers.conformance.candidates import HONEST, WORSE, Candidate

TARGET = ROOT / "docs" / "reference" / "sandbox-tests.md"
_HEAD = """# Conformance of the sandbox tiers

`tests/helpers/conformance/` holds {number} programs: legitimate, broken and hostile ones, and variations of them that
a seed draws; a sentence beside each says what it tries. Each goes through a whole evaluation on every tier, one after
the other in the same worker.

    python -m tests.helpers.conformance --page

runs them all and writes this page. `--sandbox MODULE:FUNCTION` tries another sandbox, which needs a method `run` like
that of `hpc.sandbox.Interpreter`. `tests/stress/test_conformance.py` runs a part of them.

## What is checked of every program

- The evaluation ends with a right outcome: a kind of failure, *{honest}* (the very score of the exact solution, to the
  last bit) or *{worse}*.
- Nothing is told: no secret that was laid out is in the result, and the program has not announced that it got where it
  should not.
- Nothing is left: no process, no file outside its folder, no changed file, no connection, no neighbour harmed.

Outcomes are those of all tiers ({tiers}) where none is named. A program is *not run* where the tier
itself says that programs can do what it tries. A variation may have any outcome but a better score.

Last run {date} on Linux {kernel}; memory is kept by {memory}.
"""


def write_page(themes: Mapping[str, Sequence[Candidate]], results: Mapping[str, Mapping[str, str]]) -> None:
    """Write the page from the outcomes of programs, by tier and name."""
    head = _HEAD.format(
        number=sum(map(len, themes.values())),
        honest=HONEST,
        worse=WORSE,
        date=f"{datetime.now(UTC):%d %B %Y}",
        kernel=platform.release().split("-")[0],
        memory=limit_keepers()["memory"],
        tiers=", ".join(results),
    )
    tables = (f"## {theme}\n\n{_table(programs, results)}\n" for theme, programs in themes.items())
    TARGET.write_text("\n".join([head, *tables]))


def _table(programs: Sequence[Candidate], results: Mapping[str, Mapping[str, str]]) -> str:
    rows = (
        f"| {one.name} | {outcome_cell({tier: found.get(one.name, '') for tier, found in results.items()})} |"
        for one in programs
    )
    return "\n".join(["| program | outcome |", "| --- | --- |", *rows])


def outcome_cell(by_tier: Mapping[str, str]) -> str:
    """Return the one outcome of all tiers, or each with its tiers: `bubblewrap, landlock: honest; rlimits: not run`."""
    tiers: dict[str, list[str]] = {}
    for tier, outcome in by_tier.items():
        tiers.setdefault(outcome, []).append(tier)
    if len(tiers) == 1:
        return next(iter(tiers))
    return "; ".join(f"{', '.join(names)}: {outcome}" for outcome, names in tiers.items())


def outcomes_in(cell: str, tiers: Sequence[str]) -> dict[str, str]:
    """Return the outcome of each tier from a cell of the page."""
    if ": " not in cell:
        return dict.fromkeys(tiers, cell)
    parts = (part.split(": ") for part in cell.split("; "))
    return {tier: outcome for names, outcome in parts for tier in names.split(", ")}
