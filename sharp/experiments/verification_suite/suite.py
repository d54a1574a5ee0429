"""Running the suite: every trial once, whatever interrupts it; counts, tables and files of its rows.

FOLDER/trials.jsonl           the rows of all trials that have ended
FOLDER/verification.{html,md,csv,parquet}
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import get_args

from pandas import DataFrame

from sharp.document import Block, Details, Headline, Paragraph, Report, Section, Table, plural
from sharp.experiments.agent_benchmark.process_pool import WorkerDied, map_unordered
from sharp.experiments.frame import frame_of
from sharp.experiments.publishing import ExperimentFiles, publish
from sharp.experiments.run_summary import dtypes_of
from sharp.experiments.verification_suite.trials import (
    Class,
    ResultsWriter,
    VerificationResult,
    VerificationTrial,
    run_trial,
)
from sharp.reference import ProgressCallback
from sharp.solvers import ClockName

CLASSES: tuple[str, ...] = (*get_args(Class), "failed")
WRONG = "verified, wrong"
AT_WORK = "problems are solved and verified"


def list_trials(
    seed: int, count: int, time_limit: float, clock: ClockName = "cpu"
) -> tuple[VerificationTrial, ...]:
    """Return the first trials of a seed, each with so many seconds of the clock."""
    return tuple(VerificationTrial(seed, index, time_limit, clock) for index in range(count))


def run_suite(
    folder: Path,
    trials: Sequence[VerificationTrial],
    workers: int,
    on_message: Callable[[str], None] = lambda _: None,
    progress: ProgressCallback = lambda *_: None,
) -> tuple[VerificationResult, ...]:
    """Run all trials that have no row yet, or a failed one, in that many processes, and return all rows in order.

    `on_message` is told each row, `progress` how many trials have ended.
    Raises `RunLocked` where another process does so, and KeyboardInterrupt; everything stays resumable.
    """
    with ResultsWriter(folder) as writer:
        for warning in writer.record.warnings:
            on_message(warning)
        rows = dict(writer.record.rows)
        left = [each for each in trials if each.key not in rows or rows[each.key].verdict == "failed"]
        progress(0, len(left), AT_WORK)
        for number, found in enumerate(
            map_unordered([[each] for each in left], run_trial, workers, writer.beat), 1
        ):
            row = _lost(found) if isinstance(found, WorkerDied) else found
            writer.add(row)
            rows[row.key] = row
            progress(number, len(left), AT_WORK)
            on_message(format_row(row))
    return tuple(rows[each.key] for each in trials if each.key in rows)


def _lost(died: WorkerDied[VerificationTrial]) -> VerificationResult:
    trial = died.item
    reason = f"its process ended with code {died.exitcode}"
    return VerificationResult(trial.key, trial.seed, trial.index, sentence=reason)


def format_row(row: VerificationResult) -> str:
    """Return a row as a line of progress."""
    what = f"{row.sabotage}, {row.route}" if row.sabotage else "solved"
    error = "unknown" if row.error is None else f"{row.error:.1e}"
    width = f" {row.width:.1e}" if row.width is not None else ""
    return (
        f"{row.key} {row.family}; {row.feature}{width}; {what}: {row.verdict}, true error {error} "
        f"at accuracy {row.accuracy:.0e}, {row.cpu_seconds:.1f} s of processor"
        if row.accuracy
        else f"{row.key}: {row.verdict}: {row.sentence}"
    )


def counts(rows: Sequence[VerificationResult]) -> dict[str, int]:
    """Return how many rows are of each class."""
    return {name: sum(row.verdict == name for row in rows) for name in CLASSES}


def honest_doubts(rows: Sequence[VerificationResult]) -> tuple[int, int]:
    """Return how many problems that were to be solved and are affordable were not verified, and how many there are."""
    due = [row for row in rows if not row.sabotage and row.affordable]
    return sum(row.verdict != "verified, right" for row in due), len(due)


def frame(rows: Sequence[VerificationResult]) -> DataFrame:
    """Return rows as a frame with the columns of `VerificationResult`."""
    return frame_of([asdict(row) for row in rows], dtypes_of(VerificationResult))


def publish_suite(folder: Path, rows: Sequence[VerificationResult], trials: int) -> ExperimentFiles:
    """Write page and rows into the folder of a suite."""
    return publish(folder, "verification", build_report(rows, trials), "verification", frame(rows))


def build_report(rows: Sequence[VerificationResult], trials: int) -> Report:
    """Return the page of a suite, finished or not."""
    found = counts(rows)
    doubted, due = honest_doubts(rows)
    sentence = f"{found[WRONG]} wrong verdicts of {plural(len(rows), 'problem')}; {trials} were asked for."
    of_sound = f"{doubted} of {due} affordable problems that were solved are not verified."
    tables = (_table(rows, name) for name in ("route", "sabotage", "feature", "family"))
    blocks: list[Block] = [Paragraph(of_sound), *tables]
    wrong = [format_row(row) for row in rows if row.verdict in (WRONG, "failed")]
    if wrong:
        listed = Table(("trial",), tuple((line,) for line in wrong), (), "Wrong or failed")
        blocks.append(Details("Wrong verdicts and failed trials", (listed,)))
    return Report(
        "Verification suite", Headline(sentence), (), (Section("counts", "Verdicts", tuple(blocks)),)
    )


def _table(rows: Sequence[VerificationResult], name: str) -> Table:
    values = list(dict.fromkeys(getattr(row, name) or "none" for row in rows))
    lines = []
    for value in sorted(values):
        own = [row for row in rows if (getattr(row, name) or "none") == value]
        lines.append((value, *(str(number) for number in counts(own).values())))
    columns = (name, *CLASSES)
    return Table(columns, tuple(lines), columns[1:], f"By {name}")
