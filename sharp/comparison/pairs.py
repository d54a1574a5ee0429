"""When a run pays against another on the same problem."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from sharp.comparison.entry import Entry
from sharp.llm.break_even import BreakEven


def by_problem(entries: Sequence[Entry]) -> Mapping[str, tuple[Entry, ...]]:
    """Return the runs of each problem, in their order."""
    groups: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.row.problem].append(entry)
    return {problem: tuple(group) for problem, group in groups.items()}


def break_evens(group: Sequence[Entry]) -> dict[int, BreakEven]:
    """Return, by number, the break-even of each run that has an error against the first of its problem.

    Who found nothing has saved nothing; there is none where that is the first.
    """
    first = group[0]
    return {entry.number: against(entry, first) for entry in group[1:] if entry.has_error and first.has_error}


def against(entry: Entry, first: Entry) -> BreakEven:
    """Return how many dollars more for language models a run takes than another, and what of runs it saves."""
    mine, others = entry.costs.dollars, first.costs.dollars
    return BreakEven(
        f"#{first.number} {first.name}",
        None if mine is None or others is None else mine - others,
        first.row.evaluations - entry.row.evaluations,
        first.row.executions - entry.row.executions,
    )
