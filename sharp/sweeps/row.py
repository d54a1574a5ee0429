"""One row of a sweep's table: what is known of a cell when its run rests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

State = Literal["finished", "failed", "unfinished"]


Course = tuple[float | None, ...]


@dataclass(frozen=True)
class Row:
    """A run in figures; what is not known is None or empty, as in rows that an earlier version wrote.

    Errors are the winner's on test data, dimensionless, against the data set and against the true solution; `floor` is
    the data set's own distance from it, and `flag` says `below` or `at` where the error is no more than that. Times are
    in seconds. `effects` counts what the run has recorded; `note` says what made it fail.

    Calls, tokens, dollars and seconds are those that the run has paid for; `shared_calls` were given by another. What
    begins with `whole_` is what the same run costs where nothing is shared or cached: methods are compared by it.

    `roles` says which model played each, `playbook` whether the rule-based playbook played `all`, `some` or
    `none` of them. `ending` is why the last cycle of a tournament ended, `saturated` whether it was for want of gain
    (None without a tournament).

    `best_after` has the best validation metric so far after each validation run, in the order of the method (None as
    long as nothing ran well), so that its positions count evaluations. `round_best` has the best metric of each round's
    turns, over all cycles (None where all failed).

    `programs` were run, repaired versions not counted, after `repairs` calls for debugging. `run_time_s` is the
    winner's steady time on test data on `device`, `compile_s` what its first call took beyond that (None where it was
    called once). `order` is its empirical order of accuracy, or `order_note` says why there is none. `strategies`
    counts the programs that were written from the problem or by a search, `libraries` has each library's mean share of
    calls in the programs that were run, `winner_libraries` those in the winner.

    `nominee_evaluations` counts the nominees of all first rounds, whose results were asked for: `nominee_cached` of
    these came from the cache, `nominee_shared` from an equal program of the same run, and the others were measured.
    """

    state: State
    note: str = ""
    problem: str = ""
    method: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)
    playbook: str = ""
    winner: str | None = None
    winner_strategy: str | None = None
    nrmse: float | None = None
    nrmse_truth: float | None = None
    floor: float | None = None
    flag: str = ""
    validation_nrmse: float | None = None
    run_time_s: float | None = None
    compile_s: float | None = None
    device: str = ""
    order: float | None = None
    order_note: str = ""
    rounds: int = 0
    cycles: int = 0
    saturated: bool | None = None
    ending: str = ""
    best_after: Course = ()
    round_best: Course = ()
    evaluations: int = 0
    cached_evaluations: int = 0
    executions: int = 0
    programs: int = 0
    repairs: int = 0
    nominee_evaluations: int = 0
    nominee_cached: int = 0
    nominee_shared: int = 0
    calls: int = 0
    shared_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    dollars: float | None = None
    evaluation_seconds: float = 0.0
    gpu_seconds: float = 0.0
    whole_prompt_tokens: int = 0
    whole_completion_tokens: int = 0
    whole_dollars: float | None = None
    whole_evaluation_seconds: float = 0.0
    whole_gpu_seconds: float = 0.0
    seconds: float | None = None
    strategies: Mapping[str, int] = field(default_factory=dict)
    libraries: Mapping[str, float] = field(default_factory=dict)
    winner_libraries: Mapping[str, float] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    effects: int = 0
    data: str = ""
    software: str = ""
    prompts: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {field.name: _plain(getattr(self, field.name)) for field in fields(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Row:
        """Rebuild a row; what another version knew besides is left out."""
        known = {field.name: _frozen(data[field.name]) for field in fields(cls) if field.name in data}
        return cls(**known)


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


def lowest(rows: Mapping[str, Row]) -> tuple[float, str] | None:
    """Return the lowest error on test data and its cell; None without any, or where the data are not the same."""
    finished = {cell: row for cell, row in rows.items() if row.state == "finished"}
    scored = {cell: row.nrmse for cell, row in finished.items() if row.nrmse is not None}
    if len({rows[cell].data for cell in scored}) != 1:
        return None
    return min((error, cell) for cell, error in scored.items())
