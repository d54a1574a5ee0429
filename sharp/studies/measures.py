"""What studies show of a run: single figures, shares, and how its best error came down."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sharp.report.panels import Kind
from sharp.report.text import number_text
from sharp.sweeps.row import Row

Value = float | None


@dataclass(frozen=True)
class Measure:
    """A figure of a run: its name on axes, how it is written, and of what kind it is.

    Errors stand beside the data's floor, and a run without one has failed.
    """

    title: str
    value: Callable[[Row], Value]
    text: Callable[[float], str] = number_text
    kind: Kind = "count"


@dataclass(frozen=True)
class Shares:
    """What a run consists of, `{name: count or share}`; `title` says of what these are parts."""

    title: str
    parts: Callable[[Row], Mapping[str, float]]


@dataclass(frozen=True)
class Series:
    """A figure of a run after each of its steps; None as long as there is nothing."""

    title: str
    step: str
    values: Callable[[Row], Sequence[Value]]


def short_error(value: float) -> str:
    """Return an error in three digits, as the paper writes them."""
    return f"{value:.2e}"


def _nominees_cached(row: Row) -> Value:
    return row.nominee_cached / row.nominee_evaluations if row.nominee_evaluations else None


def _repairs_per_program(row: Row) -> Value:
    return row.repairs / row.programs if row.programs else None


def _winner(row: Row) -> Mapping[str, float]:
    return {row.winner_strategy: 1} if row.winner_strategy else {}


MEASURES: Mapping[str, Measure] = {
    "nrmse": Measure("error on test data (nRMSE)", lambda row: row.nrmse, short_error, "error"),
    "nrmse_truth": Measure(
        "error against the true solution", lambda row: row.nrmse_truth, short_error, "error"
    ),
    "validation_nrmse": Measure(
        "error on validation data (nRMSE)", lambda row: row.validation_nrmse, short_error, "error"
    ),
    "rounds": Measure("rounds", lambda row: row.rounds),
    "cycles": Measure("judging cycles", lambda row: row.cycles),
    "evaluations": Measure("evaluations", lambda row: row.evaluations),
    "executions": Measure("executions of programs", lambda row: row.executions),
    "repairs": Measure("repairs for one program that was run", _repairs_per_program),
    "run_time": Measure("run time of the winner, s", lambda row: row.run_time_s),
    "order": Measure("order of accuracy of the winner", lambda row: row.order, kind="level"),
    "nominees_cached": Measure("share of nominees' evaluations that were cached", _nominees_cached),
    "calls": Measure("calls of models, those taken over included", lambda row: row.calls + row.shared_calls),
    "tokens": Measure(
        "tokens, those taken over included", lambda row: row.whole_prompt_tokens + row.whole_completion_tokens
    ),
    "dollars": Measure("dollars for calls, those taken over included", lambda row: row.whole_dollars),
    "seconds": Measure(
        "seconds of evaluations, cached ones included", lambda row: row.whole_evaluation_seconds
    ),
}
SHARES: Mapping[str, Shares] = {
    "libraries": Shares("calls of libraries in the programs that were run", lambda row: row.libraries),
    "winner_libraries": Shares("calls of libraries in the winners", lambda row: row.winner_libraries),
    "strategies": Shares("programs by strategy", lambda row: row.strategies),
    "winner_strategy": Shares("winners by strategy", _winner),
}
SERIES: Mapping[str, Series] = {
    "best_after": Series("best error on validation data", "evaluations", lambda row: row.best_after),
    "round_best": Series("best error of the round", "round", lambda row: row.round_best),
}
