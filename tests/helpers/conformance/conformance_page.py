"""Writes docs/reference/sandbox-tests.md from the candidates: python -m tests.helpers.conformance.conformance_page."""

from __future__ import annotations

from tests.helpers import ROOT
from tests.helpers.conformance.candidates import (
    ALL,
    CHANGE_FILES,
    HONEST,
    SIGNAL_OTHERS,
    THEMES,
    WORSE,
    Candidate,
)

TARGET = ROOT / "docs" / "reference" / "sandbox-tests.md"
SAYS: dict[str, tuple[str, ...]] = {
    "bubblewrap": (),
    "landlock": (),
    "rlimits": (CHANGE_FILES, SIGNAL_OTHERS),
}

HEAD = f"""# Conformance of the sandbox tiers

Generated programs may be wrong in any way, and a program that is rewarded for a small error may find a way to it
that is not mathematics. `tests/helpers/conformance/`
holds {len(ALL)} hostile or broken candidates. Each goes through a whole
evaluation (request, worker, interpreter, harness, reading, scoring) on every tier that the machine has, one after
the other in the same worker with its warm interpreter. Those to which it could make a difference are also run with a
fresh interpreter each.

    python -m pytest tests/stress/test_conformance.py

This page is written from the candidates by `python -m tests.helpers.conformance.conformance_page`; a test keeps it
true.

## What is checked of every candidate

- The evaluation ends, and its outcome is the one in the table: a kind of failure, *{HONEST}* (the very score of the
  exact solution, to the last bit: the trick did nothing) or *{WORSE}* (a finite score, worse than that).
- Nothing is told: no secret that was laid out (in the environment, the home, the data set, a file beside it,
  another process's environment) is in the result, and the candidate has not announced that it had got where it
  should not.
- Nothing is left: no process, no file outside its folder, no changed file, no connection, no neighbour harmed.
- A good solver that the same worker evaluates next scores exactly what it scored before.

A candidate is not run where the tier itself says that programs can do what it tries. The table shows a kernel with
Landlock for signals (Linux 6.12) and filters of system calls; on others a tier may say more of itself, and the suite
goes by what it says.
"""


def main() -> None:
    """Write the page."""
    TARGET.write_text(page())


def page() -> str:
    """Return the page's Markdown."""
    tables = (f"## {theme}\n\n{_table(candidates)}\n" for theme, candidates in THEMES.items())
    return "\n".join([HEAD, *tables])


def _table(candidates: tuple[Candidate, ...]) -> str:
    head = f"| candidate | what it does | {' | '.join(SAYS)} |\n|{' --- |' * (2 + len(SAYS))}"
    return "\n".join([head, *map(_row, candidates)])


def _row(candidate: Candidate) -> str:
    cells = (_cell(candidate, tier) for tier in SAYS)
    return f"| {candidate.name} | {candidate.tries} | {' | '.join(cells)} |"


def _cell(candidate: Candidate, tier: str) -> str:
    return "*not run*" if candidate.do in SAYS[tier] else " or ".join(sorted(candidate.outcome))


if __name__ == "__main__":
    main()
