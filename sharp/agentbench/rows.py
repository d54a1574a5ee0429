"""The record of a benchmark, `FOLDER/rows.jsonl`: one line for each course that has ended, and for each case checked.

Lines are appended with a checksum (`hpc.log`) by whoever holds the folder's lease. What is damaged is done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from hpc.files import AppendFile, cut_torn_tail, make_directory
from hpc.lease import Lease
from hpc.log import decode_event, encode_event

Ending = Literal["solved", "understood", "unsolved", "asks", "refused", "failed"]
"""How a course ended by its own account; `failed` is a fault of the machinery, and the course is tried again."""


@dataclass(frozen=True)
class Row:
    """One course: what it was, how it ended, what its solution is worth, and what it took.

    `solved` is by the held-out set alone; `error` (relative L2) and `maximum` (the largest error over the largest
    value) are None where no solution on the case's domain was found. `by_order` says that fields or coordinates were
    called otherwise, and were taken in their order. `objections` counts findings that were not passed as things stood
    in the end, None where that is not known. `seconds` are those of all model calls and uses of tools, `uses` counts
    these, `corrections` how often parameters were chosen anew, `plans` the plans. `figures` are those of the tool chain
    by name, `parameters` is the share of its parameters that are right, and `wrong` says what is not.
    """

    key: str
    arm: str
    policy: str
    team: str
    mistakes: float
    case: str
    category: str
    style: str
    seed: int
    ending: Ending
    reason: str
    solved: bool = False
    error: float | None = None
    maximum: float | None = None
    by_order: bool = False
    objections: int | None = None
    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    uses: int = 0
    corrections: int = 0
    plans: int = 0
    figures: Mapping[str, float] = field(default_factory=dict)
    parameters: float | None = None
    wrong: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        """Prompt and completion together."""
        return self.prompt_tokens + self.completion_tokens

    def to_json(self) -> dict[str, Any]:
        """Return the plain form that is kept."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        """Rebuild a row from its plain form."""
        return cls(**{**data, "wrong": tuple(data["wrong"])})


@dataclass(frozen=True)
class Check:
    """What the deterministic check says of a well-posed case: `solve`, or a false alarm with its reason."""

    key: str
    case: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Record:
    """All rows and checks by key, and what was wrong with the file."""

    rows: Mapping[str, Row] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def finished(self) -> frozenset[str]:
        """The keys of all courses that need not be played again."""
        return frozenset(key for key, row in self.rows.items() if row.ending != "failed")


def record_file(folder: Path) -> Path:
    """Return where the record of a benchmark is."""
    return folder / "rows.jsonl"


def read_record(folder: Path) -> Record:
    """Read a record; a missing one is empty, and lines that are damaged or torn are left out with a warning."""
    try:
        *lines, tail = record_file(folder).read_bytes().split(b"\n")
    except FileNotFoundError:
        return Record()
    events = [decode_event(line) for line in lines]
    damaged = [number for number, event in enumerate(events, 1) if event is None]
    warnings = [f"{record_file(folder)}:{number}: damaged, and left out" for number in damaged]
    if tail:
        warnings.append(f"{record_file(folder)}: the last line is torn, and left out")
    known = [event for event in events if event is not None]
    rows = [Row.from_json(event["row"]) for event in known if event["event"] == "row"]
    checks = [Check(**event["check"]) for event in known if event["event"] == "check"]
    return Record({row.key: row for row in rows}, {check.key: check for check in checks}, tuple(warnings))


class RecordWriter:
    """Appends to the record of a benchmark under a lease, a context; raises `RunLocked` where another holds it."""

    def __init__(self, folder: Path) -> None:
        make_directory(folder)
        self._lease = Lease.acquire(folder)
        self.record = read_record(folder)
        cut_torn_tail(record_file(folder))
        self._file = AppendFile(record_file(folder))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._lease.release()

    def beat(self) -> None:
        """Renew the lease; raises `Fenced` once somebody has taken it over."""
        self._lease.beat()

    def add(self, found: Row | Check) -> None:
        """Keep a row or a check."""
        name = "row" if isinstance(found, Row) else "check"
        self.beat()
        self._file.append(encode_event({"event": name, name: asdict(found)}))
