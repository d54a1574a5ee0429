"""A comparison for a terminal, and as plain values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from sharp.comparison.entry import Entry
from sharp.comparison.notes import notes
from sharp.comparison.page import break_even_lines, tables
from sharp.comparison.pairs import break_evens, by_problem
from sharp.report.blocks import Table
from sharp.report.marks import LEGEND


def in_words(entries: Sequence[Entry]) -> str:
    """Return the comparison as text: for each problem its tables, the break-even, and what to beware of."""
    return "\n".join(
        line for problem, group in by_problem(entries).items() for line in _problem(problem, group)
    ).rstrip()


def as_json(entries: Sequence[Entry]) -> dict[str, Any]:
    """Return the comparison as plain values."""
    problems = {
        problem: {
            "runs": [entry.number for entry in group],
            "break_even": [
                {
                    "run": number,
                    **asdict(found),
                    "per_evaluation": found.per_evaluation,
                    "per_execution": found.per_execution,
                }
                for number, found in break_evens(group).items()
            ],
            "notes": list(notes(group)),
        }
        for problem, group in by_problem(entries).items()
    }
    return {"runs": [entry.to_json() for entry in entries], "problems": problems}


def _problem(problem: str, group: Sequence[Entry]) -> Iterator[str]:
    yield problem
    for table in tables(group):
        yield from ("", f"  {table.caption}", *_aligned(table))
    if any(entry.row.flag for entry in group):
        yield f"  {LEGEND}"
    yield from _listed("Break-even", break_even_lines(group))
    yield from _listed("Beware", tuple(notes(group)))
    yield ""


def _aligned(table: Table) -> Iterator[str]:
    rows = (table.columns, *table.rows)
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.columns))]
    for row in rows:
        cells = (
            cell.rjust(width) if name in table.numbers else cell.ljust(width)
            for cell, width, name in zip(row, widths, table.columns, strict=True)
        )
        yield f"  {'  '.join(cells)}".rstrip()


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield from ("", f"  {title}", *(f"  - {line}" for line in lines))
