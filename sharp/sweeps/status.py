"""Where a sweep stands: its record, and a look at which runs have begun; a thousand of them are nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hpc.errors import RunDirectoryError
from hpc.lease import read_holder
from sharp.llm.budgets import Spent
from sharp.llm.ledger import Account, Ledger
from sharp.llm.protocol import Usage
from sharp.report.text import plural
from sharp.runs.allowance import Allowance, allowances
from sharp.sweeps.folder import begun_runs, is_sweep, sweep_file
from sharp.sweeps.record import SweepRecord, read_record, state_of
from sharp.sweeps.row import Row, lowest

_SHOWN = 8


@dataclass(frozen=True)
class SweepStatus:
    """A sweep at a glance. `at_rest` are the sums over runs that rest; what is at work now is not in them.

    `controller` says who carries it out, if anyone does. `best` is the cell with the lowest error on test data, if all
    have the same data. `budgets` are those of the whole sweep.
    """

    sweep: str
    cells: int
    states: Mapping[str, int]
    finished: bool
    controller: str | None
    failed: Mapping[str, str]
    following: tuple[str, ...]
    at_rest: Mapping[str, float | None]
    failures: Mapping[str, int]
    best: str | None
    best_nrmse: float | None
    budgets: tuple[Allowance, ...]
    gone: int

    @property
    def run(self) -> str:
        """Its directory, under the name that a run's status has for it."""
        return self.sweep

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "budgets": [budget.to_json() for budget in self.budgets]}


def view_sweep(folder: Path, spent: Spent | None = None) -> SweepStatus:
    """Look at a sweep, whether somebody works on it or not; `spent` is what its jobs on a cluster used, if any.

    Raises `RunDirectoryError` where there is none.
    """
    if not is_sweep(folder):
        raise RunDirectoryError(f"{folder} holds no sweep (there is no {sweep_file(folder)})")
    record, begun, holder = read_record(folder), begun_runs(folder), read_holder(folder)
    states = {cell: state_of(record, cell, begun=cell in begun) for cell in record.planned}
    rows = {
        cell: record.rows[cell] for cell, state in states.items() if cell in record.rows and state != "new"
    }
    best_nrmse, best = lowest(rows) or (None, None)
    return SweepStatus(
        sweep=str(folder),
        cells=len(record.planned),
        states=dict(Counter(states.values())),
        finished=bool(states) and set(states.values()) == {"finished"},
        controller=f"process {holder.pid} on {holder.host}" if holder else None,
        failed={cell: rows[cell].note for cell, state in states.items() if state == "failed"},
        following=tuple(cell for cell, state in states.items() if state in ("unfinished", "new"))[:_SHOWN],
        at_rest=_sums(rows.values()),
        failures=dict(sum((Counter(row.failures) for row in rows.values()), Counter())),
        best=best,
        best_nrmse=best_nrmse,
        budgets=_budgets(record, rows.values(), spent or Spent(wall_time=record.worked_minutes)),
        gone=len(begun - set(record.planned)),
    )


def sweep_in_words(status: SweepStatus, more: Sequence[str] = (), following: str = "") -> str:
    """Return a status as lines for a person, ending with `more` and the next useful command (`following`, if given)."""
    states = ", ".join(f"{count} {state}" for state, count in status.states.items())
    sums = status.at_rest
    counts = {name: f"{value:,.0f}" for name, value in sums.items() if value is not None}
    dollars = "dollars unknown" if sums["dollars"] is None else f"${sums['dollars']:.4g}"
    lines = [
        f"{status.sweep}: {plural(status.cells, 'cell')}" + (f" ({states})" if states else ""),
        f"  calls       {counts['calls']} paid for, {counts['shared_calls']} shared; {counts['tokens']} tokens, "
        f"{dollars}",
        f"  runs        {counts['executions']}, of which {counts['evaluations']} on validation data; "
        f"{counts['cached_evaluations']} of these from the cache{_failures(status)}",
    ]
    if status.best is not None:
        lines.append(f"  best        {status.best}: error on test data {status.best_nrmse:.3e}")
    if status.budgets:
        lines.append(f"  budget      {', '.join(budget.in_words() for budget in status.budgets)}")
    if status.gone:
        lines.append(f"  besides     {plural(status.gone, 'run')} of cells that are no longer in the file")
    failed = list(status.failed.items())
    lines += [f"  failed      {cell}: {note}" for cell, note in failed[:_SHOWN]]
    if len(failed) > _SHOWN:
        lines.append(f"              and {len(failed) - _SHOWN} more; {status.sweep}/report.md has all")
    if status.following:
        lines.append(f"  next        {', '.join(status.following)}{_and_more(status)}")
    return "\n".join([*lines, *more, following or _next(status)])


def _sums(rows: Iterable[Row]) -> dict[str, float | None]:
    rows = list(rows)
    names = ("calls", "shared_calls", "evaluations", "cached_evaluations", "executions", "gpu_seconds")
    sums: dict[str, float | None] = {name: sum(getattr(row, name) for row in rows) for name in names}
    sums["tokens"] = sum(row.prompt_tokens + row.completion_tokens for row in rows)
    prices = [row.dollars for row in rows if row.calls]
    known = [price for price in prices if price is not None]
    sums["dollars"] = sum(known) if len(known) == len(prices) else None
    return sums


def _budgets(record: SweepRecord, rows: Iterable[Row], spent: Spent) -> tuple[Allowance, ...]:
    if all(limit is None for limit in record.budget.values()):
        return ()
    sums = _sums(rows)
    tokens, calls = int(sums["tokens"] or 0), int(sums["calls"] or 0)
    account = Account(calls, Usage(prompt=tokens), sums["dollars"] or 0.0)
    paid = int((sums["evaluations"] or 0) - (sums["cached_evaluations"] or 0))
    ledger = Ledger({("all", "all"): account}, {"evaluation": paid})
    return allowances({"config": {"budget": record.budget}}, ledger, spent)


def _failures(status: SweepStatus) -> str:
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(status.failures.items()))
    return f"; failures: {listed}" if listed else ""


def _and_more(status: SweepStatus) -> str:
    left = status.states.get("new", 0) + status.states.get("unfinished", 0) - len(status.following)
    return f" and {left} more" if left > 0 else ""


def _next(status: SweepStatus) -> str:
    if status.finished:
        return f"Finished. Report: {Path(status.sweep) / 'report.html'}, table: {Path(status.sweep) / 'table.csv'}"
    if status.controller is not None:
        return f"Running: {status.controller}. Look again with: sharp watch {status.sweep}"
    return f"Nobody works on it. Continue with: sharp sweep {status.sweep}"
