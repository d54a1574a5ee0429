"""The spread over seeds: what repeats of the same cell came to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite

from sharp.report.blocks import Paragraph, Section, Table
from sharp.report.marks import flag_of, marked_error
from sharp.report.text import MISSING, count_text, number_text
from sharp.statistics.spread import spread
from sharp.sweeps.paired import SEED, shown
from sharp.sweeps.row import Row
from sharp.sweeps.table import Line, axes_of

_ERRORS: Mapping[str, Callable[[Row], float | None]] = {
    "error": lambda row: row.nrmse,
    "against truth": lambda row: row.nrmse_truth,
}
_COUNTS: Mapping[str, Callable[[Row], float]] = {
    "evaluations": lambda row: row.evaluations,
    "executions": lambda row: row.executions,
    "GPU-seconds": lambda row: row.whole_gpu_seconds,
}
_OF_ERRORS = ("median", "quartiles", "range")
_OF_COUNTS = ("median", "range")
_FAILED = "failed"


def over_seeds(lines: Sequence[Line]) -> Section | None:
    """Return median and spread over seeds; None where nothing was repeated."""
    groups = _groups(lines)
    if not any(len(rows) > 1 for rows in groups.values()):
        return None
    axes = [name for name in axes_of(lines) if name != SEED]
    numbers = (
        *(f"{name}, {what}" for name in _ERRORS for what in _OF_ERRORS),
        *(f"{name}, {what}" for name in _COUNTS for what in _OF_COUNTS),
    )
    rows = tuple((*key, *_summary(group)) for key, group in groups.items())
    table = Table((*axes, "runs", "failed", *numbers), rows, ("runs", "failed", *numbers))
    explained = Paragraph(
        "Runs are those that have finished. One in which no program ran has failed: it counts as an infinite error in "
        f"the median and the quartiles, shown as {_FAILED}. Marks are those of the results above."
    )
    return Section("seeds", "Over seeds", (explained, table))


def _groups(lines: Sequence[Line]) -> dict[tuple[str, ...], list[Row]]:
    """Return the finished rows by all but the seed."""
    axes = axes_of(lines)
    groups: dict[tuple[str, ...], list[Row]] = defaultdict(list)
    if SEED in axes:
        for line in lines:
            if line.row is not None and line.row.state == "finished":
                groups[tuple(shown(line.values.get(name)) for name in axes if name != SEED)].append(line.row)
    return groups


def _summary(rows: Sequence[Row]) -> Iterator[str]:
    floors = {row.floor for row in rows if row.floor is not None}
    floor = floors.pop() if len(floors) == 1 else None
    yield count_text(len(rows))
    yield count_text(sum(row.nrmse is None for row in rows))
    for name, error in _ERRORS.items():
        yield from _errors([error(row) for row in rows], floor if name == "error" else None)
    for count in _COUNTS.values():
        numbers = spread(count(row) for row in rows)
        yield number_text(numbers.median)
        yield _range(number_text(numbers.least), number_text(numbers.most))


def _errors(values: Iterable[float | None], floor: float | None) -> Iterator[str]:
    found = spread(values)
    if found.failed == found.count:
        yield from [MISSING] * len(_OF_ERRORS)
        return

    def text(error: float) -> str:
        return marked_error(error, flag_of(error, floor)) if isfinite(error) else _FAILED

    yield text(found.median)
    yield _range(text(found.lower), text(found.upper))
    yield _range(text(found.least), text(found.most))


def _range(low: str, high: str) -> str:
    return low if low == high else f"{low} – {high}"
