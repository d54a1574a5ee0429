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
a seed draws. Each goes through a whole evaluation on every tier, one after the other in the same worker.

    python -m tests.helpers.conformance --page

runs them all and writes this page. `--sandbox MODULE:FUNCTION` tries another sandbox, which needs a method `run` like
that of `hpc.sandbox.Interpreter`. `tests/stress/test_conformance.py` runs a part of them.

## What is checked of every program

- The evaluation ends with a right outcome: a kind of failure, *{honest}* (the very score of the exact solution, to the
  last bit) or *{worse}*.
- Nothing is told: no secret that was laid out is in the result, and the program has not announced that it got where it
  should not.
- Nothing is left: no process, no file outside its folder, no changed file, no connection, no neighbour harmed.

A program is *not run* where the tier itself says that programs can do what it tries. A variation may have any outcome
but a better score.

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
    )
    tables = (f"## {theme}\n\n{_table(programs, results)}\n" for theme, programs in themes.items())
    TARGET.write_text("\n".join([head, *tables]))


def _table(programs: Sequence[Candidate], results: Mapping[str, Mapping[str, str]]) -> str:
    head = f"| program | what it does | {' | '.join(results)} |\n|{' --- |' * (2 + len(results))}"
    rows = (
        f"| {one.name} | {one.tries} | {' | '.join(found.get(one.name, '') for found in results.values())} |"
        for one in programs
    )
    return "\n".join([head, *rows])
