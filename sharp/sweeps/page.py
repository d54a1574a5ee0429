"""The report of a sweep: what came out of every cell, over seeds, and what it cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from sharp.report.blocks import Block, Facts, Note, Paragraph, Report, Section, Table, Verdict
from sharp.report.marks import LEGEND, marked_error
from sharp.report.text import MISSING, count_text, duration_text, error_text, number_text, plural
from sharp.sweeps.paired import paired, shown
from sharp.sweeps.row import Row, lowest
from sharp.sweeps.seeds import over_seeds
from sharp.sweeps.table import Line, axes_of

_ERRORS = ("error", "against truth", "floor")
_NUMBERS = ("rounds", "evaluations", "executions", "calls", "tokens", "dollars", "time")


def compose(name: str, description: str, lines: Sequence[Line]) -> Report:
    """Return the report of a sweep, finished or not."""
    sections = (
        _results(lines),
        over_seeds(lines),
        paired(lines),
        _failed(lines),
        _costs(lines),
        _programs(lines),
        _setting(description, lines),
    )
    return Report(
        title=f"Sweep {name}",
        verdict=_verdict(lines),
        notes=tuple(_notes(lines)),
        sections=tuple(section for section in sections if section is not None),
    )


def _verdict(lines: Sequence[Line]) -> Verdict:
    rows = _rows(lines)
    finished = [row for row in rows if row.state == "finished"]
    failed = sum(row.state == "failed" for row in rows)
    parts = [f"{len(finished)} of {plural(len(lines), 'cell')} finished"]
    if failed:
        parts.append(f"{failed} failed")
    by_cell = {line.cell: line.row for line in lines if line.row is not None}
    best = lowest(by_cell)
    flag = "" if best is None else by_cell[best[1]].flag
    if best is not None:
        parts.append(f"lowest error on test data {marked_error(best[0], flag)} ({best[1]})")
    return Verdict("; ".join(parts) + ".", below_floor=flag == "below")


def _notes(lines: Sequence[Line]) -> Iterator[Note]:
    rows = [row for row in _rows(lines) if row.software]
    for what, values in (
        ("versions of pde-sharp", {row.software for row in rows}),
        ("prompts", {row.prompts for row in rows}),
    ):
        if len(values) > 1:
            yield Note(f"The cells were run with different {what}; the table names those of each.", "warning")
    labels = {row.data for row in rows}
    for name in sorted({label.partition("@")[0] for label in labels}):
        if sum(label.startswith(f"{name}@") for label in labels) > 1:
            yield Note(
                f"The data set {name} had different contents; the table names those of each cell.", "warning"
            )
    played = sum(row.playbook in ("all", "some") for row in rows)
    if played:
        yield Note(
            f"In {plural(played, 'cell')} the rule-based playbook stood in for language models: these figures say how "
            "the machinery works, and nothing of any model."
        )
    below = sum(row.flag == "below" for row in rows)
    if below:
        yield Note(
            f"In {plural(below, 'cell')} the winner's error is below the floor: it imitates the data set's errors, and "
            "a smaller error is no greater accuracy.",
            "warning",
        )


def _results(lines: Sequence[Line]) -> Section:
    axes = axes_of(lines)
    columns = ("cell", *axes, "state", *_ERRORS, "winner", *_NUMBERS)
    rows = tuple(_result(line, axes) for line in lines)
    explained = Paragraph(
        "Errors of the winners on test data, which is opened once, when a run has chosen its winner; the floor is the "
        "data set's own distance from the true solution. Calls, tokens and dollars are what a cell has paid for "
        f"itself. The CSV file beside this page has more columns. {LEGEND}"
    )
    return Section("results", "Results", (explained, Table(columns, rows, (*_ERRORS, *_NUMBERS))))


def _result(line: Line, axes: Sequence[str]) -> tuple[str, ...]:
    row = line.row
    values = [shown(line.values.get(name)) for name in axes]
    if row is None:
        return (line.cell, *values, "to do", *[MISSING] * (len(_ERRORS) + 1 + len(_NUMBERS)))
    return (line.cell, *values, row.state, *_errors(row), *_numbers(row))


def _errors(row: Row) -> tuple[str, ...]:
    """Return what a run has found; nothing of the test data before it has finished."""
    if row.state != "finished":
        return (MISSING,) * (len(_ERRORS) + 1)
    errors = (marked_error(row.nrmse, row.flag), error_text(row.nrmse_truth), error_text(row.floor))
    return (*errors, row.winner or MISSING)


def _numbers(row: Row) -> tuple[str, ...]:
    tokens = row.prompt_tokens + row.completion_tokens
    counts = map(count_text, (row.rounds, row.evaluations, row.executions, row.calls, tokens))
    return (*counts, number_text(row.dollars), duration_text(row.seconds))


def _failed(lines: Sequence[Line]) -> Section | None:
    rows = tuple((line.cell, line.row.note) for line in lines if line.row and line.row.state == "failed")
    if not rows:
        return None
    explained = Paragraph("Each is tried again when the sweep is run again; what it has paid for is kept.")
    return Section("failed", "Failed cells", (explained, Table(("cell", "what happened"), rows)))


def _costs(lines: Sequence[Line]) -> Section:
    rows = _rows(lines)
    pairs = (
        ("calls paid for", count_text(sum(row.calls for row in rows))),
        ("calls taken from other cells", count_text(sum(row.shared_calls for row in rows))),
        ("prompt tokens", count_text(sum(row.prompt_tokens for row in rows))),
        ("completion tokens", count_text(sum(row.completion_tokens for row in rows))),
        ("dollars", number_text(_sum(row.dollars for row in rows))),
        ("evaluations", count_text(sum(row.evaluations for row in rows))),
        ("of these from the cache", count_text(sum(row.cached_evaluations for row in rows))),
        ("executions", count_text(sum(row.executions for row in rows))),
        ("time of evaluations", duration_text(sum(row.evaluation_seconds for row in rows))),
        ("of it on GPUs", duration_text(sum(row.gpu_seconds for row in rows))),
        ("dollars if nothing were shared", number_text(_sum(row.whole_dollars for row in rows))),
        (
            "time of evaluations if nothing were cached",
            duration_text(sum(row.whole_evaluation_seconds for row in rows)),
        ),
        ("of that on GPUs", duration_text(sum(row.whole_gpu_seconds for row in rows))),
    )
    return Section("costs", "What it cost", (Facts(pairs),))


def _sum(dollars: Iterable[float | None]) -> float | None:
    known = list(dollars)
    return None if None in known else sum(price for price in known if price is not None)


def _programs(lines: Sequence[Line]) -> Section | None:
    found = [(line.cell, line.row.failures) for line in lines if line.row and line.row.failures]
    if not found:
        return None
    kinds = tuple(dict.fromkeys(kind for _, failures in found for kind in sorted(failures)))
    rows = tuple((cell, *(count_text(failures.get(kind, 0)) for kind in kinds)) for cell, failures in found)
    return Section("programs", "Failures of programs by class", (Table(("cell", *kinds), rows, kinds),))


def _setting(description: str, lines: Sequence[Line]) -> Section:
    blocks: list[Block] = [Paragraph(description)] if description else []
    values: dict[str, dict[str, None]] = defaultdict(dict)
    for line in lines:
        for name, value in line.values.items():
            values[name][shown(value)] = None
    blocks.append(Facts(tuple((name, ", ".join(texts)) for name, texts in values.items())))
    return Section("setting", "The matrix", tuple(blocks))


def _rows(lines: Sequence[Line]) -> list[Row]:
    return [line.row for line in lines if line.row is not None]
