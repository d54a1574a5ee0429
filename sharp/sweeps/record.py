"""The record of a sweep, `SWEEP/sweep.jsonl`: which cells there are, and how the run of each came to rest.

One line an event (`hpc.log`), appended by whoever holds the sweep's lease, readable by anyone at any time:

    open   somebody begins to carry the sweep out
    cell   a cell was planned: its values, the hashes of what it is, how many candidates it writes
    plan   the cells of the sweep file, in its order, from now on; those that it does not name stay on disk
    row    a run rests: finished, failed, or stopped in good order

Everything in it can be had again from the runs themselves; it is what makes a thousand of them quick to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hpc.files import AppendFile, cut_torn_tail
from hpc.lease import Lease
from hpc.log import decode_event, encode_event
from sharp.sweeps.row import Row

Event = dict[str, Any]


@dataclass(frozen=True)
class KnownCell:
    """A cell that was planned once: what tables show of it, and the hashes of its identity."""

    values: Mapping[str, Any]
    whole: str
    analysis: str | None
    genesis: str | None
    candidates: int
    best_of_n: str | None = None


@dataclass(frozen=True)
class SweepRecord:
    """What the record says.

    `planned` are the cells of the newest plan, `budget` its limits, `spans` the first and last moment by epoch.
    """

    cells: Mapping[str, KnownCell] = field(default_factory=dict)
    planned: tuple[str, ...] = ()
    rows: Mapping[str, Row] = field(default_factory=dict)
    spans: Mapping[int, tuple[str, str]] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)

    @property
    def worked_minutes(self) -> float:
        """How long the sweep was carried out, each time from the first line to the last."""
        moments = ((datetime.fromisoformat(a), datetime.fromisoformat(b)) for a, b in self.spans.values())
        return sum((last - first).total_seconds() for first, last in moments) / 60


def record_file(folder: Path) -> Path:
    """Return where a sweep's record is."""
    return folder / "sweep.jsonl"


def read_record(folder: Path) -> SweepRecord:
    """Read the record of a sweep; a missing one is empty, and lines that are damaged or torn do not count."""
    try:
        lines = record_file(folder).read_bytes().split(b"\n")
    except FileNotFoundError:
        return SweepRecord()
    return record_of(event for line in lines if (event := decode_event(line)) is not None)


def record_of(events: Iterable[Event], known: SweepRecord | None = None) -> SweepRecord:
    """Return what events say together, after what is known already."""
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
                rows[event["cell"]] = Row.from_json(event["row"])
    return SweepRecord(cells, planned, rows, spans, budget)


def state_of(record: SweepRecord, cell: str, *, begun: bool) -> str:
    """Return where a cell stands: `finished`, `failed`, `unfinished` or `new`, without a run."""
    row = record.rows.get(cell)
    if not begun:
        return "failed" if row is not None and row.state == "failed" else "new"
    return "unfinished" if row is None else row.state


class RecordWriter:
    """Appends to the record of a sweep while its lease holds; raises `Fenced` once somebody has taken it over."""

    def __init__(self, folder: Path, lease: Lease) -> None:
        path = record_file(folder)
        cut_torn_tail(path)
        self._lease = lease
        self.record = read_record(folder)
        self._file = AppendFile(path)
        self._append([{"event": "open", "holder": str(lease.holder)}])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def plan(self, cells: Mapping[str, KnownCell], budget: Mapping[str, Any]) -> None:
        """Keep what the sweep file says now, in its order; nothing is written where that is known."""
        new: list[Event] = [
            {"event": "cell", "cell": name, "known": _plain(cell)}
            for name, cell in cells.items()
            if self.record.cells.get(name) != cell
        ]
        if new or (tuple(cells), budget) != (self.record.planned, self.record.budget):
            self._append([*new, {"event": "plan", "cells": list(cells), "budget": budget}])

    def row(self, cell: str, row: Row) -> None:
        """Keep how a run came to rest."""
        self._append([{"event": "row", "cell": cell, "row": row.to_json()}])

    def _append(self, events: list[Event]) -> None:
        self._lease.beat()
        place = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "epoch": self._lease.epoch}
        whole = [{**event, **place} for event in events]
        self._file.append(b"".join(map(encode_event, whole)))
        self.record = record_of(whole, self.record)


def _plain(cell: KnownCell) -> dict[str, Any]:
    return {**vars(cell), "values": dict(cell.values)}
