"""The log of a sweep: which cells there are, and the summary of each run that has ended.

    open   a process starts to run cells
    cell   a cell was planned: its values, the hashes of its fingerprint, its number of candidates
    plan   the cells of the sweep file, in its order, from now on; other cells stay on disk
    row    a run has ended: finished, failed, or stopped in good order

The runs themselves hold all of it; the log makes a thousand of them quick to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from hpc.journal import Lease
from sharp.experiments.log import Event, ExperimentLog, read_log
from sharp.experiments.run_summary import RunSummary
from sharp.experiments.sweeps.prefix_graph import CellFingerprint
from sharp.llm import CallTotals, Ledger, TokenUsage


@dataclass(frozen=True)
class KnownCell(CellFingerprint):
    """A cell that was planned once: its fingerprint and its values."""

    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class SweepRecord:
    """The content of a log.

    `planned` are the cells of the newest plan, `budget` its limits, `spans` the first and last time by epoch.
    """

    cells: Mapping[str, KnownCell] = field(default_factory=dict)
    planned: tuple[str, ...] = ()
    rows: Mapping[str, RunSummary] = field(default_factory=dict)
    spans: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)

    @property
    def worked_minutes(self) -> float:
        """How long cells were run, for each process from its first line to its last."""
        moments = ((datetime.fromisoformat(a), datetime.fromisoformat(b)) for a, b in self.spans.values())
        return sum((last - first).total_seconds() for first, last in moments) / 60

    @property
    def axes(self) -> tuple[str, ...]:
        """The names of all axes of the newest plan, in the order in which they come up."""
        return tuple(dict.fromkeys(name for cell in self.planned for name in self.cells[cell].values))

    def state_of(self, cell: str, *, begun: bool) -> str:
        """Return `finished`, `failed`, `unfinished` or `new`, which is a cell without a run."""
        row = self.rows.get(cell)
        if not begun:
            return "failed" if row is not None and row.state == "failed" else "new"
        return "unfinished" if row is None else row.state


@dataclass(frozen=True)
class UsageTotals:
    """What runs have paid for: calls and tokens as an account, and runs on validation data."""

    account: CallTotals = field(default_factory=CallTotals)
    evaluations: int = 0

    def __add__(self, other: UsageTotals) -> UsageTotals:
        return UsageTotals(self.account + other.account, self.evaluations + other.evaluations)

    def __sub__(self, other: UsageTotals) -> UsageTotals:
        """Take away what was counted beforehand: calls and evaluations."""
        account = replace(self.account, calls=self.account.calls - other.account.calls)
        return UsageTotals(account, self.evaluations - other.evaluations)

    def ledger(self) -> Ledger:
        """Return it as budgets look at it."""
        return Ledger({("all", "all"): self.account}, {"evaluation": self.evaluations})

    @classmethod
    def of_row(cls, row: RunSummary) -> UsageTotals:
        """Return what a run at rest has paid for."""
        usage = TokenUsage(prompt=row.prompt_tokens, completion=row.completion_tokens)
        unpriced = row.calls if row.dollars is None else 0
        account = CallTotals(row.calls, usage, row.dollars or 0.0, unpriced)
        return cls(account, row.evaluations - row.cached_evaluations)


def log_file(folder: Path) -> Path:
    """Return the path of a sweep's log."""
    return folder / "sweep_log.jsonl"


def read_record(folder: Path) -> SweepRecord:
    """Return the content of a sweep's log."""
    return record_of(read_log(log_file(folder))[0])


def record_of(events: Iterable[Event], known: SweepRecord | None = None) -> SweepRecord:
    """Return the content of events, in addition to a known one."""
    known = known or SweepRecord()
    cells, rows, spans = dict(known.cells), dict(known.rows), dict(known.spans)
    planned, budget = known.planned, known.budget
    for event in events:
        first, _ = spans.get(event["epoch"], (event["time"], ""))
        spans[event["epoch"]] = (first, event["time"])
        match event["event"]:
            case "cell":
                cells[event["cell"]] = KnownCell(**event["known"])
            case "plan":
                planned, budget = tuple(event["cells"]), event["budget"]
            case "row":
                rows[event["cell"]] = RunSummary.from_json(event["row"])
    return SweepRecord(cells, planned, rows, spans, budget)


class SweepLogWriter:
    """Appends to the log of a sweep while its lease holds; raises `LeaseLost` once it is lost."""

    def __init__(self, folder: Path, lease: Lease) -> None:
        self.record = read_record(folder)
        self._holder = str(lease.holder)
        self._log = ExperimentLog(log_file(folder), lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()

    def open(self) -> None:
        """Start the time that cells are run; a resumed sweep with nothing to run leaves its log as it is."""
        self._append([{"event": "open", "holder": self._holder}])

    def plan(self, cells: Mapping[str, KnownCell], budget: Mapping[str, Any]) -> None:
        """Record the cells of the sweep file in its order; nothing is written if they are known."""
        new: list[Event] = [
            {"event": "cell", "cell": name, "known": vars(cell)}
            for name, cell in cells.items()
            if self.record.cells.get(name) != cell
        ]
        if new or (tuple(cells), budget) != (self.record.planned, self.record.budget):
            self._append([*new, {"event": "plan", "cells": list(cells), "budget": budget}])

    def row(self, cell: str, row: RunSummary) -> None:
        """Record the summary of a run that has ended."""
        self._append([{"event": "row", "cell": cell, "row": row.to_json()}])

    def _append(self, events: list[Event]) -> None:
        self.record = record_of(self._log.append(events), self.record)
