"""The cells of a sweep in pairs: each value of an axis with the axis's first, all else alike."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any

from sharp.llm.break_even import BreakEven
from sharp.report.blocks import Block, Bullets, Heading, Note, Paragraph, Section, Table
from sharp.report.paired import EXPLAINED, comparison_blocks
from sharp.report.text import MISSING, count_text, number_text, plural
from sharp.statistics.paired import compare
from sharp.statistics.reaching import Course, Reaching, reaching
from sharp.statistics.spread import spread
from sharp.sweeps.row import Row
from sharp.sweeps.table import Line, axes_of

METHOD, PROBLEM, SEED = "method", "problem", "seed"
_MEASURES: Mapping[str, Callable[[Row], float | None]] = {
    "Errors on test data": lambda row: row.nrmse,
    "Errors on test data against the true solution": lambda row: row.nrmse_truth,
}
Cells = Mapping[str, Mapping[str, Row]]
"""Rows by case, which is a problem and what else the sweep varies, and by repeat, which is a seed on a data set."""
Pairs = Sequence[tuple[Row, Row]]


def paired(lines: Sequence[Line]) -> Section | None:
    """Return the comparisons along every axis but problem and seed, the method's first; None where nothing pairs."""
    finished = [line for line in lines if line.row is not None and line.row.state == "finished"]
    axes = sorted(axes_of(lines), key=lambda name: name != METHOD)
    blocks = [
        block for axis in axes if axis not in (PROBLEM, SEED) for block in _along(axis, axes, lines, finished)
    ]
    if not blocks:
        return None
    return Section("paired", "Compared in pairs", (Paragraph(EXPLAINED), *blocks))


def _along(
    axis: str, axes: Sequence[str], lines: Sequence[Line], finished: Sequence[Line]
) -> Iterator[Block]:
    others = [name for name in axes if name not in (axis, PROBLEM, SEED)]
    by_value = _by_value(axis, others, finished)
    first = next((shown(line.values[axis]) for line in lines if axis in line.values), "")
    reference = by_value.pop(first, {})
    pairs = {value: pairs for value, cells in by_value.items() if (pairs := _pairs(cells, reference))}
    if not pairs:
        return
    yield Heading(f"{axis}: against {first}")
    for title, measure in _MEASURES.items():
        yield Paragraph(f"{title}:")
        compared = {
            value: compare(_measured(by_value[value], measure), _measured(reference, measure))
            for value in pairs
        }
        yield from comparison_blocks(first, compared, "case" if others else PROBLEM)
    yield from _at_floor(pairs)
    yield from _reached(first, pairs)
    yield from _costs(first, pairs)


def _by_value(axis: str, others: Sequence[str], finished: Sequence[Line]) -> dict[str, Cells]:
    by_value: dict[str, dict[str, dict[str, Row]]] = defaultdict(lambda: defaultdict(dict))
    for line in finished:
        if line.row is not None and axis in line.values:
            case = (line.row.problem or line.values.get(PROBLEM), *(line.values.get(name) for name in others))
            repeat = f"seed {shown(line.values.get(SEED))} on {line.row.data}"
            by_value[shown(line.values[axis])][" · ".join(map(shown, case))][repeat] = line.row
    return dict(by_value)


def _pairs(cells: Cells, reference: Cells) -> Pairs:
    return [
        (row, reference[case][repeat])
        for case, rows in cells.items()
        for repeat, row in rows.items()
        if repeat in reference.get(case, {})
    ]


def _measured(cells: Cells, measure: Callable[[Row], float | None]) -> dict[str, dict[str, float | None]]:
    return {case: {repeat: measure(row) for repeat, row in rows.items()} for case, rows in cells.items()}


def _at_floor(pairs: Mapping[str, Pairs]) -> Iterator[Block]:
    """Say where errors against the data set cannot tell who is the more accurate."""
    every = [pair for found in pairs.values() for pair in found]
    floored = sum(bool(own.flag and other.flag) for own, other in every)
    if floored:
        yield Note(
            f"In {floored} of {plural(len(every), 'pair')} both errors on test data are at or below the floor: there "
            "the smaller one is no greater accuracy, and only the errors against the true solution tell.",
            "warning",
        )


def _reached(first: str, pairs: Mapping[str, Pairs]) -> Iterator[Block]:
    """Say after how many evaluations runs had the best validation error of their partner."""
    columns = (
        f"against {first}",
        "pairs",
        "reached",
        "needed: median",
        "least",
        "most",
        f"{first} needed: median",
        f"{first} made: median",
    )
    rows = tuple((value, *_reaching(found)) for value, rows in pairs.items() if (found := _courses(rows)))
    if rows:
        yield Table(
            columns, rows, columns[1:], f"Evaluations until a run had {first}'s best validation error"
        )


def _courses(pairs: Pairs) -> list[Reaching]:
    courses = [(_course(row), _course(partner)) for row, partner in pairs]
    found = (reaching(one, other) for one, other in courses if one is not None and other is not None)
    return [each for each in found if each is not None]


def _course(row: Row) -> Course | None:
    """Return how the best validation error came down; None where judges were told of something else."""
    last = row.best_after[-1] if row.best_after else None
    if last is None:
        return row.best_after or None
    told = row.validation_nrmse is not None and isclose(last, row.validation_nrmse)
    return row.best_after if told else None


def _reaching(found: Sequence[Reaching]) -> tuple[str, ...]:
    needed = spread(each.needed for each in found)
    reached = needed.count - needed.failed
    return (
        count_text(needed.count),
        count_text(reached),
        *(
            number_text(value) if isfinite(value) else "never"
            for value in (needed.median, needed.least, needed.most)
        ),
        number_text(spread(each.baseline_needed for each in found).median),
        number_text(spread(each.baseline_used for each in found).median),
    )


@dataclass(frozen=True)
class _Cost:
    """What the runs of one side cost together; dollars are None where a price is unknown."""

    evaluations: int
    executions: int
    seconds: float
    gpu_seconds: float
    dollars: float | None

    @classmethod
    def of(cls, runs: Iterable[Row]) -> _Cost:
        rows = list(runs)
        prices = [row.whole_dollars for row in rows]
        known = [price for price in prices if price is not None]
        return cls(
            sum(row.evaluations for row in rows),
            sum(row.executions for row in rows),
            sum(row.whole_evaluation_seconds for row in rows),
            sum(row.whole_gpu_seconds for row in rows),
            sum(known) if len(known) == len(prices) else None,
        )

    @property
    def texts(self) -> tuple[str, ...]:
        counts = (count_text(self.evaluations), count_text(self.executions))
        return (*counts, *map(number_text, (self.seconds, self.gpu_seconds, self.dollars)))


def _costs(first: str, pairs: Mapping[str, Pairs]) -> Iterator[Block]:
    names = ("evaluations", "executions", "program-seconds", "GPU-seconds", "dollars")
    compared = tuple(name for each in names for name in (each, f"{each}, {first}"))
    columns = (f"against {first}", "pairs", *compared)
    costs = {
        value: (_Cost.of(own for own, _ in found), _Cost.of(other for _, other in found))
        for value, found in pairs.items()
    }
    rows = tuple(
        (value, count_text(len(pairs[value])), *_alternating(*both)) for value, both in costs.items()
    )
    yield Table(
        columns, rows, columns[1:], "What the pairs cost together, as if nothing were shared or cached"
    )
    if all(row.playbook == "all" for found in pairs.values() for both in found for row in both):
        yield Paragraph("The playbook asks no money for its answers, so nothing can be said of break-even.")
    else:
        yield Bullets(
            tuple(f"{value}: {_break_even(first, *both).sentence()}." for value, both in costs.items())
        )


def _alternating(own: _Cost, other: _Cost) -> Iterator[str]:
    for both in zip(own.texts, other.texts, strict=True):
        yield from both


def _break_even(first: str, own: _Cost, other: _Cost) -> BreakEven:
    extra = None if own.dollars is None or other.dollars is None else own.dollars - other.dollars
    return BreakEven(first, extra, other.evaluations - own.evaluations, other.executions - own.executions)


def shown(value: Any) -> str:
    """Return a value on an axis as tables show it."""
    return MISSING if value is None else str(value)
