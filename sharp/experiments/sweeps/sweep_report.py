"""The page of a sweep: the results of every cell, their spread over seeds, comparisons in pairs, and the cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pandas import DataFrame

from sharp.document import (
    MISSING,
    Block,
    Facts,
    Headline,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    count_text,
    duration_text,
    error_text,
    number_text,
    plural,
)
from sharp.experiments.frame import axes_of, finished, run_frame
from sharp.experiments.run_summary import RunSummary, lowest
from sharp.experiments.sweeps.folder import run_path
from sharp.experiments.sweeps.sweep_log import SweepRecord
from sharp.experiments.tables import (
    Column,
    number,
    over_seeds,
    paired_section,
    shown,
    table,
    text,
    total,
)
from sharp.report import LEGEND, marked_error


def sweep_rows(record: SweepRecord) -> DataFrame:
    """Return the cells of the newest plan as a frame, in the order of the sweep file; paths are relative to it."""
    extra = (
        {"cell": cell, "path": str(run_path(Path(), cell)), **record.cells[cell].values}
        for cell in record.planned
    )
    summaries = (record.rows.get(cell) for cell in record.planned)
    return run_frame(zip(extra, summaries, strict=True), record.axes, more={"path": "string"})


def build_report(name: str, description: str, record: SweepRecord, rows: DataFrame) -> Report:
    """Return the page of a sweep, finished or not."""
    planned = {cell: record.rows[cell] for cell in record.planned if cell in record.rows}
    sections = (
        _results(rows),
        over_seeds(rows),
        paired_section(rows),
        _failed(rows),
        _costs(rows),
        _failures(planned),
        _matrix(description, rows),
    )
    return Report(
        title=f"Sweep {name}",
        headline=_headline(rows, planned),
        notes=tuple(notes(rows)),
        sections=tuple(section for section in sections if section is not None),
    )


def count_states(rows: DataFrame, noun: str) -> list[str]:
    """Return how many runs are finished and failed, in words."""
    failed = int((rows["state"] == "failed").sum())
    done = f"{len(finished(rows))} of {plural(len(rows), noun)} finished"
    return [done, f"{failed} failed"] if failed else [done]


def _headline(rows: DataFrame, planned: dict[str, RunSummary]) -> Headline:
    parts = count_states(rows, "cell")
    best = lowest(planned)
    flag = "" if best is None else planned[best[1]].flag
    if best is not None:
        parts.append(f"lowest error on test data {marked_error(best[0], flag)} ({best[1]})")
    return Headline("; ".join(parts) + ".", flag == "below")


def mixed_versions(rows: DataFrame) -> Iterator[Note]:
    """Yield a warning if runs were made with different software or prompts."""
    for name, what in (("software", "versions of pde-sharp"), ("prompts", "prompts")):
        if len(set(rows[name].dropna()) - {""}) > 1:
            yield Note(f"The runs were made with different {what}; the table names those of each.", "warning")


def notes(rows: DataFrame) -> Iterator[Note]:
    """Yield what makes the runs of a sweep less comparable than their figures look."""
    yield from mixed_versions(rows)
    labels = rows["data"].dropna().unique()
    for data in sorted({label.partition("@")[0] for label in labels}):
        if sum(label.startswith(f"{data}@") for label in labels) > 1:
            yield Note(
                f"The data set {data} had different contents; the table names those of each run.", "warning"
            )
    played = int(rows["rule_based"].isin(["all", "some"]).sum())
    if played:
        yield Note(
            f"In {plural(played, 'run')} the rule-based model stood in for language models: these figures say how "
            "the machinery works, and nothing of any model."
        )
    below = int((rows["flag"] == "below").sum())
    if below:
        yield Note(
            f"In {plural(below, 'run')} the winner's error is below the data-set error: it imitates the "
            "data set's errors, and "
            "a smaller error is no greater accuracy.",
            "warning",
        )


def _results(rows: DataFrame) -> Section:
    columns = (
        text("cell"),
        *map(text, axes_of(rows)),
        Column("state", lambda row: row["state"] if _ended(row) else "to do", number=False),
        _of_results("error", lambda row: marked_error(row["nrmse"], row["flag"])),
        _of_results("against reference", lambda row: error_text(row["nrmse_reference"])),
        _of_results("data error", lambda row: error_text(row["data_error"])),
        Column("winner", lambda row: (row["state"] == "finished" and row["winner"]) or MISSING, number=False),
        *(number(name) for name in ("rounds", "evaluations", "executions", "calls")),
        Column("tokens", lambda row: count_text(total((row["prompt_tokens"], row["completion_tokens"])))),
        number("dollars", as_text=number_text),
        number("time", "seconds", duration_text),
    )
    explained = Paragraph(
        "Errors of the winners on test data, which is opened once, when a run has chosen its winner; "
        "the data-set error "
        "is the distance of the data set from the reference solution. Calls, tokens and dollars are "
        "what a cell has paid for "
        f"itself. The CSV file beside this page has more columns. {LEGEND}"
    )
    return Section("results", "Results", (explained, table(rows, columns)))


def _ended(row: Mapping[str, Any]) -> bool:
    return row["software"] is not None


def _of_results(title: str, as_text: Any) -> Column:
    """Return a column of what a run has found; nothing of the test data is shown before it has finished."""
    return Column(title, lambda row: as_text(row) if row["state"] == "finished" else MISSING)


def _failed(rows: DataFrame) -> Section | None:
    failed = rows[rows["state"] == "failed"]
    if not len(failed):
        return None
    explained = Paragraph("Each is tried again when the sweep is run again; what it has paid for is kept.")
    columns = (text("cell"), text("what happened", "note"))
    return Section("failed", "Failed cells", (explained, table(failed, columns)))


def _costs(rows: DataFrame) -> Section:
    known = rows[rows["software"].notna()]
    facts = (
        ("calls paid for", "calls", count_text),
        ("calls taken from other cells", "reused_calls", count_text),
        ("prompt tokens", "prompt_tokens", count_text),
        ("completion tokens", "completion_tokens", count_text),
        ("dollars", "dollars", number_text),
        ("evaluations", "evaluations", count_text),
        ("of these from the cache", "cached_evaluations", count_text),
        ("executions", "executions", count_text),
        ("time of evaluations", "evaluation_seconds", duration_text),
        ("of it on GPUs", "gpu_seconds", duration_text),
        ("dollars if nothing were shared", "standalone_dollars", number_text),
        ("time of evaluations if nothing were cached", "standalone_evaluation_seconds", duration_text),
        ("of that on GPUs", "standalone_gpu_seconds", duration_text),
    )
    pairs: list[tuple[str, str]] = [(title, as_text(total(known[name]))) for title, name, as_text in facts]
    return Section("costs", "What it cost", (Facts(tuple(pairs)),))


def _failures(planned: dict[str, RunSummary]) -> Section | None:
    found = {cell: row.failures for cell, row in planned.items() if row.failures}
    if not found:
        return None
    kinds = tuple(dict.fromkeys(kind for failures in found.values() for kind in sorted(failures)))
    rows = tuple((cell, *(count_text(each.get(kind, 0)) for kind in kinds)) for cell, each in found.items())
    return Section("programs", "Failures of programs by class", (Table(("cell", *kinds), rows, kinds),))


def _matrix(description: str, rows: DataFrame) -> Section:
    blocks: list[Block] = [Paragraph(description)] if description else []
    return Section("setting", "The matrix", (*blocks, axis_facts(rows)))


def axis_facts(rows: DataFrame) -> Facts:
    """Return the values on each axis."""
    values = {name: dict.fromkeys(map(shown, rows[name])) for name in axes_of(rows)}
    return Facts(tuple((name, ", ".join(each)) for name, each in values.items()))
