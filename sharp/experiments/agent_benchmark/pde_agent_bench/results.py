"""What came of the cases of a file: rows, and the log that keeps them.

FOLDER/cases.jsonl        the row of each case that has been worked on, under the folder's lease
"""

# ruff: noqa: RUF009 - `column` makes a field

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any, Literal

from sharp.experiments.log import RecordWriter, read_log
from sharp.experiments.run_summary import column
from sharp.solvers import ClockName

Outcome = Literal[
    "verified", "inconclusive", "failed", "unsolved", "rejected", "needs_clarification", "refused", "crashed"
]


@dataclass(frozen=True)
class CaseSettings:
    """How cases are solved and judged: seconds for each, the relative error aimed at, the one that passes, the clock.

    Seconds are those of the `clock`, as in `SolveOptions`.
    """

    time_limit: float = 30.0
    accuracy: float = 1e-5
    gate: float = 1e-4
    clock: ClockName = "cpu"


@dataclass(frozen=True)
class CaseTask:
    """A case to be solved: a line of the file, its id and family as far as they can be read, and the settings."""

    line: str
    case: str
    family: str
    settings: CaseSettings

    @property
    def key(self) -> str:
        """What the row is known by: the content of the case, and the settings."""
        return hashlib.sha256(repr((self.line.strip(), asdict(self.settings))).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class CaseResult:
    """The row of a case; what is not known is None or empty."""

    key: str = column("hash of the case and the settings", ...)
    case: str = column("id of the case", ...)
    family: str = column("type of its equation", ...)
    domain: str = column("type of its domain", "")
    outcome: Outcome = column(
        "verdict on the solution; refused: not imported; crashed: an error of ours", "crashed"
    )
    reason: str = column("the verdict in words, or why there is none", "")
    method: str = column("numerical method", "")
    resolution: int | None = column("resolution of the solution")
    unknowns: int | None = column("unknowns of the solution")
    seconds: float | None = column("time of import, solving and all checks", unit="s")
    cpu_seconds: float | None = column("the same as time of the processor", unit="s")
    estimate: float | None = column("error as the solver estimates it, relative", unit="1")
    reference: Literal["exact", "none"] = column("the case's own solution", "none")
    error: float | None = column("rel_L2_grid of what the case asks for", unit="1")
    field_error: float | None = column("the same of the fields themselves, as vectors", unit="1")
    gate: float = column("relative error that passes", 1e-4, unit="1")

    @property
    def passed(self) -> bool:
        """Whether the error is within the gate: the measured one, or without a reference the verified estimate."""
        if self.error is not None:
            return self.error <= self.gate
        return self.outcome == "verified" and self.estimate is not None and self.estimate <= self.gate

    @property
    def wrong(self) -> bool:
        """Whether the solution was called verified although it, or what is asked of it, is beyond the gate."""
        errors = [error for error in (self.error, self.field_error) if error is not None]
        return self.outcome == "verified" and bool(errors) and not max(errors) <= self.gate

    @property
    def false_alarm(self) -> bool:
        """Whether a solution within the gate was called wrong."""
        return self.outcome == "failed" and self.error is not None and self.error <= self.gate

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> CaseResult:
        """Rebuild a row from its plain form, in which what is infinite is text."""
        plain: dict[str, Any] = {name: inf if value == "inf" else value for name, value in data.items()}
        return cls(**plain)


@dataclass(frozen=True)
class CaseRecord:
    """All rows by key, and what was wrong with the log."""

    rows: Mapping[str, CaseResult] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    def left(self, tasks: list[CaseTask]) -> list[CaseTask]:
        """Return the tasks that have no row yet, or one that another version may do better: crashed or not imported."""
        done = {key for key, row in self.rows.items() if row.outcome not in ("crashed", "refused")}
        return [task for task in tasks if task.key not in done]


def log_file(folder: Path) -> Path:
    """Return the path of the log."""
    return folder / "cases.jsonl"


def read_record(folder: Path) -> CaseRecord:
    """Read the log; lines that are damaged or torn are left out with a warning."""
    events, warnings = read_log(log_file(folder))
    rows = [CaseResult.from_json(event["row"]) for event in events if event["event"] == "case"]
    return CaseRecord({row.key: row for row in rows}, warnings)


class CaseWriter(RecordWriter[CaseRecord]):
    """Appends rows to the log."""

    def __init__(self, folder: Path) -> None:
        super().__init__(log_file(folder), read_record)

    def add(self, row: CaseResult) -> None:
        """Keep a row; JSON has no infinite numbers, so that these are written as text."""
        plain = {name: "inf" if value == inf else value for name, value in asdict(row).items()}
        self._log.append([{"event": "case", "row": plain}])
