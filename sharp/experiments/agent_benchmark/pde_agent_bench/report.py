"""The page of a benchmark on pde-agent-bench: wrong verdicts first, the table by family, published pass rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from pandas import DataFrame

from hpc.journal import software_version
from sharp.document import (
    MISSING,
    Block,
    Bullets,
    Facts,
    Headline,
    Note,
    Paragraph,
    Report,
    Section,
    Table,
    error_text,
    number_text,
    plural,
)
from sharp.experiments.agent_benchmark.pde_agent_bench.published import published_rates
from sharp.experiments.agent_benchmark.pde_agent_bench.results import CaseResult, CaseTask
from sharp.experiments.frame import frame_of
from sharp.experiments.publishing import ExperimentFiles, publish
from sharp.experiments.run_summary import dtypes_of

NAME = "pdeagent"
RULES = (
    "Published: an error of at most 10 times that of the benchmark's own finite elements, which the case files do not "
    "hold, and a run time of at most 3 times theirs on a machine that is not ours. Here: the gate on the error named "
    "above, and a limit of time for each case, but no gate on the time.",
    "Published: language models write programs for a library that is prescribed (DOLFINx, Firedrake, deal.II). Here: "
    "`sharp solve` chooses among its own classical methods, and no model takes part.",
    "Published: references without an exact solution are finite elements on a finer mesh. Here such a case has no "
    "reference: it passes where all checks are kept and the estimated error is within the gate.",
    "Published rates are over all 645 cases; the figures above are over the cases of the file, those that could not "
    "be imported counted as not passed.",
)
_FAMILY_COLUMNS = (
    "family",
    "cases",
    "imported",
    "passed",
    "share",
    "verified",
    "wrong verdicts",
    "median s",
    "longest s",
)


def summary_of(rows: Sequence[CaseResult]) -> dict[str, Any]:
    """Return the counts over some rows: all plain values, times in seconds, None where there is no case."""
    times = [row.seconds for row in rows if row.seconds is not None and row.outcome != "refused"]
    return {
        "cases": len(rows),
        "imported": sum(row.outcome != "refused" for row in rows),
        "passed": sum(row.passed for row in rows),
        "share": sum(row.passed for row in rows) / len(rows) if rows else None,
        "verified": sum(row.outcome == "verified" for row in rows),
        "wrong_verified": sum(row.wrong for row in rows),
        "false_alarms": sum(row.false_alarm for row in rows),
        "crashed": sum(row.outcome == "crashed" for row in rows),
        "median_seconds": median(times) if times else None,
        "longest_seconds": max(times, default=None),
    }


def by_family(rows: Sequence[CaseResult]) -> dict[str, list[CaseResult]]:
    """Return the rows of each family, families in alphabetical order."""
    families = sorted({row.family for row in rows})
    return {family: [row for row in rows if row.family == family] for family in families}


def family_table(rows: Sequence[CaseResult]) -> Table:
    """Return how each family fares, and all of them together."""
    found = [*by_family(rows).items(), ("all", list(rows))]
    texts = tuple((family, *_texts(summary_of(of_family))) for family, of_family in found)
    return Table(_FAMILY_COLUMNS, texts, _FAMILY_COLUMNS[1:], "By family")


def _texts(counts: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(counts["cases"]),
        str(counts["imported"]),
        str(counts["passed"]),
        _share(counts["share"]),
        str(counts["verified"]),
        str(counts["wrong_verified"]),
        number_text(counts["median_seconds"]),
        number_text(counts["longest_seconds"]),
    )


def _share(share: float | None) -> str:
    return MISSING if share is None else f"{share:.1%}"


def published_table(rows: Sequence[CaseResult]) -> Table:
    """Return our share beside the published ones."""
    ours = (
        "sharp solve, no model",
        _share(summary_of(rows)["share"]),
        f"this run, {plural(len(rows), 'case')}",
    )
    others = tuple((rate.method, _share(rate.share), rate.source) for rate in published_rates())
    return Table(
        ("method", "pass rate", "source"), (ours, *others), ("pass rate",), "Beside published pass rates"
    )


def rows_frame(rows: Sequence[CaseResult]) -> DataFrame:
    """Return rows as a frame with the columns of `CaseResult` and whether each passed or was wrongly verified."""
    plain = [{**asdict(row), "passed": row.passed, "wrong": row.wrong} for row in rows]
    return frame_of(plain, {**dtypes_of(CaseResult), "passed": "boolean", "wrong": "boolean"})


def build_report(tasks: Sequence[CaseTask], rows: Sequence[CaseResult]) -> Report:
    """Return the page of a benchmark, finished or not."""
    counts = summary_of(rows)
    sentence = f"{counts['passed']} of {plural(len(rows), 'case')} passed, {counts['wrong_verified']} wrongly verified."
    sections = (
        Section("results", "Results", (family_table(rows), published_table(rows))),
        Section("rules", "What differs in the rules", (Bullets(RULES),)),
        Section("left", "Not passed", tuple(_left(rows))),
        Section("setting", "The setting", (_setting(tasks),)),
    )
    return Report("PDEAgent-Bench", Headline(sentence), tuple(_notes(tasks, rows)), sections)


def _notes(tasks: Sequence[CaseTask], rows: Sequence[CaseResult]) -> Iterator[Note]:
    for row in rows:
        if row.wrong:
            yield Note(
                f"Wrongly verified: {row.case}, error {error_text(_worst(row))}: {row.reason}", "warning"
            )
    for row in rows:
        if row.false_alarm:
            yield Note(
                f"Called wrong, and within the gate: {row.case}, error {error_text(row.error)}.", "warning"
            )
    if len(rows) < len(tasks):
        yield Note(f"{plural(len(tasks) - len(rows), 'case')} not worked on yet.", "warning")


def _worst(row: CaseResult) -> float:
    return max(error for error in (row.error, row.field_error) if error is not None)


def _left(rows: Sequence[CaseResult]) -> Iterator[Block]:
    columns = ("case", "outcome", "error", "estimate", "reason")
    texts = tuple(
        (row.case, row.outcome, error_text(row.error), error_text(row.estimate), row.reason)
        for row in rows
        if not row.passed
    )
    yield Table(columns, texts, ("error", "estimate")) if texts else Paragraph("Every case passed.")


def _setting(tasks: Sequence[CaseTask]) -> Facts:
    settings = tasks[0].settings
    return Facts(
        (
            ("cases", "PDEAgent-Bench (arXiv 2605.09636), CC BY 4.0"),
            ("gate", f"relative error {settings.gate:g} at the last time on the case's output grid"),
            ("accuracy asked of the solver", f"{settings.accuracy:g}"),
            ("limit of time", f"{settings.time_limit:g} s a case"),
            ("version", software_version()),
        )
    )


def publish_cases(folder: Path, tasks: Sequence[CaseTask], rows: Sequence[CaseResult]) -> ExperimentFiles:
    """Write the page `pdeagent` and the rows `cases` into a folder."""
    return publish(folder, NAME, build_report(tasks, rows), "cases", rows_frame(rows))
