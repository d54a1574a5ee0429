"""One value of an axis compared with the others, in pairs of runs on the same problem with the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from sharp.report.blocks import Block, Bullets, Details, Table
from sharp.report.paired import EXPLAINED, comparison_blocks
from sharp.report.text import number_text, plural
from sharp.statistics.paired import Comparison, compare
from sharp.statistics.reaching import Reaching, reaching
from sharp.studies.cited import NOT_KNOWN
from sharp.studies.form import View
from sharp.studies.groups import fits, values_on
from sharp.studies.measures import MEASURES, SERIES
from sharp.studies.shown import Record, Shown
from sharp.sweeps.row import Row
from sharp.sweeps.table import Line, axes_of

PROBLEM = "problem"
Runs = Mapping[str, Mapping[str, Row]]


def show_paired(view: View, lines: Sequence[Line]) -> Shown:
    """Return the ratios of a measure to that of the reference: more than one speaks for the reference."""
    values = {name: _measured(view, each) for name, each in _runs(view, lines).items()}
    reference = values.pop(view.reference, {})
    comparisons = {str(name): compare(each, reference) for name, each in values.items() if reference}
    table, *more = comparison_blocks(str(view.reference), comparisons, PROBLEM)
    assert isinstance(table, Table)
    titled = replace(
        table, caption=f"ratio of the {MEASURES[view.measure].title} to that of {view.reference}"
    )
    return Shown(
        view.title, (titled,), None, tuple(_records(view, comparisons)), (EXPLAINED,), tuple(_folded(more))
    )


def _folded(blocks: Sequence[Block]) -> Iterator[Block]:
    """Fold lists of what could not be compared; unfinished sweeps have long ones."""
    for block in blocks:
        yield Details("What could not be compared", (block,)) if isinstance(block, Bullets) else block


def show_reaching(view: View, lines: Sequence[Line]) -> Shown:
    """Return after how many evaluations each had the error that the reference ended with, on validation data."""
    runs = _runs(view, lines)
    reference = runs.get(view.reference, {})
    rows, records = [], []
    for name, problems in runs.items():
        for problem, seeds in problems.items():
            pairs = _pairs(view, seeds, reference.get(problem, {}))
            if name == view.reference or not pairs:
                continue
            rows.append((str(name), problem, *_reached(pairs)))
            records.append({"view": view.title, "row": str(name), "column": problem, **_counted(pairs)})
    numbers = ("pairs", "reached", "evaluations needed", f"{view.reference} needed", f"{view.reference} used")
    axis = view.rows[0].rpartition(".")[2]
    caption = (
        f"evaluations until the best validation error is no more than that which {view.reference} ended with"
    )
    table = Table((axis, "problem", *numbers), tuple(rows), numbers, caption)
    return Shown(view.title, (table,), None, tuple(records), (f"Published: {NOT_KNOWN}.",))


def _runs(view: View, lines: Sequence[Line]) -> dict[Any, dict[str, dict[str, Row]]]:
    """Return the finished runs by value of the first axis, by problem, and by all else that is varied."""
    axis, chosen = view.rows[0], [line for line in lines if fits(line, view.where)]
    others = [
        name for name in axes_of(chosen) if name not in (axis, PROBLEM) and len(values_on(name, chosen)) > 1
    ]
    found: dict[Any, dict[str, dict[str, Row]]] = {}
    for line in chosen:
        if line.row is not None and line.row.state == "finished":
            problems = found.setdefault(line.values.get(axis), {})
            seeds = problems.setdefault(str(line.values.get(PROBLEM, "all")), {})
            seeds[" · ".join(f"{name} {line.values.get(name)}" for name in others)] = line.row
    return found


def _measured(view: View, runs: Runs) -> dict[str, dict[str, float | None]]:
    value = MEASURES[view.measure].value
    return {problem: {seed: value(row) for seed, row in seeds.items()} for problem, seeds in runs.items()}


def _records(view: View, comparisons: Mapping[str, Comparison]) -> Iterator[Record]:
    for name, each in comparisons.items():
        row = {"view": view.title, "measure": view.measure, "row": f"{name} / {view.reference}"}
        for problem in each.problems:
            yield {**row, "column": problem.problem, "median": problem.ratio, "runs": problem.pairs}
        bounds = {} if each.these is None else {"least": each.these.low, "most": each.these.high}
        yield {**row, "column": "geometric mean", "median": each.ratio, "runs": each.pairs, **bounds}


def _pairs(view: View, seeds: Mapping[str, Row], reference: Mapping[str, Row]) -> list[Reaching]:
    course = SERIES[view.measure].values
    found = (
        reaching(course(row), course(reference[seed])) for seed, row in seeds.items() if seed in reference
    )
    return [each for each in found if each is not None]


def _counted(pairs: Sequence[Reaching]) -> dict[str, float | int | None]:
    needed = [each.needed for each in pairs if each.needed is not None]
    return {
        "runs": len(pairs),
        "median": median(needed) if needed else None,
        "least": min(needed, default=None),
        "most": max(needed, default=None),
        "missing": len(pairs) - len(needed),
    }


def _reached(pairs: Sequence[Reaching]) -> tuple[str, ...]:
    counted = _counted(pairs)
    needed = counted["median"]
    spread = f"\n({counted['least']} to {counted['most']})" if needed is not None and len(pairs) > 1 else ""
    return (
        str(len(pairs)),
        f"{len(pairs) - (counted['missing'] or 0):g} of {plural(len(pairs), 'run')}",
        f"{number_text(needed)}{spread}",
        number_text(median(each.baseline_needed for each in pairs)),
        number_text(median(each.baseline_used for each in pairs)),
    )
