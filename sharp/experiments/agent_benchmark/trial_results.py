"""The results of a benchmark: a row for each trial that has ended, a check for each case, and their log.

Lines of the log are appended by the holder of the folder's lease. What is damaged is done again.
"""

# ruff: noqa: RUF009 - `column` makes a field

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from hpc.files import make_directory
from hpc.journal import Lease
from sharp.experiments.log import ExperimentLog, read_log
from sharp.experiments.run_summary import column

Ending = Literal["solved", "specified", "unsolved", "needs_clarification", "rejected", "failed"]
"""How a trial ended by its own account; `failed` is a fault of the machinery, and the trial is run again."""


@dataclass(frozen=True)
class TrialResult:
    """One trial: what it was, how it ended, what its solution is worth, and what it took."""

    key: str = column("hash of the settings of the trial and of its problem", ...)
    arm: str = column("policy, models and rate of mistakes", ...)
    policy: str = column("policy of the team", ...)
    team: str = column("models of the team", ...)
    error_rate: float = column("rate of mistakes of the rule-based model", ..., "1")
    case: str = column("id of the case", ...)
    category: str = column("category of the case", ...)
    style: str = column("style of the statement", ...)
    seed: int = column("number of the trial among those of its kind", ...)
    ending: Ending = column("how the trial ended by its own account", ...)
    reason: str = column("why it ended so", ...)
    solved: bool = column("whether the error on the held-out set is within tolerance", False)
    error: float | None = column("relative L2 error on the held-out set", unit="1")
    maximum: float | None = column("largest error over the largest value, on the held-out set", unit="1")
    matched_by_position: bool = column("whether fields or coordinates had other names than the case's", False)
    failed_checks: int | None = column("findings that were not passed and steps that failed, in the end")
    calls: int = column("calls of models", 0)
    prompt_tokens: int = column("prompt tokens", 0)
    completion_tokens: int = column("completion tokens", 0)
    seconds: float = column("time of all calls of models and tools", 0.0, "s")
    tool_calls: int = column("calls of tools", 0)
    corrections: int = column("steps whose parameters were chosen again", 0)
    plans: int = column("plans", 0)
    figures: Mapping[str, float] = column("scores of the tool chain by name", dict, "1")
    parameters: float | None = column("share of the chain's parameters that are right", unit="1")
    parameter_errors: tuple[str, ...] = column("what is wrong with its parameters", ())

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TrialResult:
        """Rebuild a row from its plain form."""
        return cls(**{**data, "parameter_errors": tuple(data["parameter_errors"])})


@dataclass(frozen=True)
class Check:
    """The verdict of the deterministic check of a well-posed case: `solve`, or a false alarm with its reason."""

    key: str
    case: str
    verdict: str
    reason: str = ""


@dataclass(frozen=True)
class Record:
    """All rows and checks by key, and what was wrong with the log."""

    rows: Mapping[str, TrialResult] = field(default_factory=dict)
    checks: Mapping[str, Check] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def finished(self) -> frozenset[str]:
        """The keys of all trials that need not be run again."""
        return frozenset(key for key, row in self.rows.items() if row.ending != "failed")


def log_file(folder: Path) -> Path:
    """Return the path of a benchmark's log."""
    return folder / "trials.jsonl"


def read_record(folder: Path) -> Record:
    """Read the log of a benchmark; lines that are damaged or torn are left out with a warning."""
    events, warnings = read_log(log_file(folder))
    rows = [TrialResult.from_json(event["row"]) for event in events if event["event"] == "row"]
    checks = [Check(**event["check"]) for event in events if event["event"] == "check"]
    return Record({row.key: row for row in rows}, {check.key: check for check in checks}, warnings)


class ResultsWriter:
    """Appends to the log of a benchmark under a lease, a context; raises `RunLocked` where another process holds it."""

    def __init__(self, folder: Path) -> None:
        make_directory(folder)
        self._lease = Lease.acquire(folder)
        self.record = read_record(folder)
        self._log = ExperimentLog(log_file(folder), self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self._lease.release()

    def beat(self) -> None:
        """Renew the lease; raises `LeaseLost` once another process has taken it over."""
        self._lease.renew()

    def add(self, found: TrialResult | Check) -> None:
        """Keep a row or a check."""
        name = "row" if isinstance(found, TrialResult) else "check"
        self._log.append([{"event": name, name: asdict(found)}])
