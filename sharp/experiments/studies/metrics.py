"""What studies show of runs: single figures, shares, and how the best error came down."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sharp.document import Scale, number_text

if TYPE_CHECKING:
    from pandas import DataFrame, Series


@dataclass(frozen=True)
class TableMetric:
    """A figure of each run of a frame: its name on axes, how it is written, and of what kind it is.

    Errors are shown beside the data set's own, and a finished run without one has failed.
    """

    title: str
    values: Callable[[DataFrame], Series]
    text: Callable[[float], str] = number_text
    kind: Scale = "count"


@dataclass(frozen=True)
class ShareMetric:
    """What a run consists of, a column of `{name: count or share}` or of one name; `title` says what the parts are."""

    title: str
    column: str


@dataclass(frozen=True)
class SeriesMetric:
    """A figure of a run after each of its steps, a column of sequences; None as long as there is nothing."""

    title: str
    step: str
    column: str


T4_DOLLARS_PER_HOUR = 0.35
"""Price of the GPU of the paper's figure 8, a T4: an assumption of ours, as the paper states none; it counts for
any device."""


def short_error(value: float) -> str:
    """Return an error in three digits, as the paper writes them."""
    return f"{value:.2e}"


def _column(*names: str) -> Callable[[DataFrame], Series]:
    """Return the sum of columns."""
    return lambda runs: sum((runs[name] for name in names[1:]), runs[names[0]])


def _ratio(name: str, of: str) -> Callable[[DataFrame], Series]:
    """Return the ratio of two columns, missing where the second is zero."""
    return lambda runs: runs[name] / runs[of].where(runs[of] > 0)


def _total_dollars(runs: DataFrame) -> Series:
    """Return the dollars of calls and of the time that programs ran, by the price of the paper's GPU."""
    return runs["standalone_dollars"] + runs["standalone_evaluation_seconds"] / 3600 * T4_DOLLARS_PER_HOUR


def _error(title: str, name: str) -> TableMetric:
    return TableMetric(title, _column(name), short_error, "error")


METRICS: Mapping[str, TableMetric] = {
    "nrmse": _error("error on test data (nRMSE)", "nrmse"),
    "nrmse_reference": _error("error against the reference solution", "nrmse_reference"),
    "validation_nrmse": _error("error on validation data (nRMSE)", "validation_nrmse"),
    "rounds": TableMetric("rounds", _column("rounds")),
    "cycles": TableMetric("judging cycles", _column("cycles")),
    "evaluations": TableMetric("evaluations", _column("evaluations")),
    "executions": TableMetric("executions of programs", _column("executions")),
    "repairs": TableMetric("repairs for one program that was run", _ratio("repairs", "programs")),
    "run_time": TableMetric("run time of the winner, s", _column("run_time_s")),
    "order": TableMetric("order of accuracy of the winner", _column("order"), kind="level"),
    "nominees_cached": TableMetric(
        "share of nominees' evaluations that were cached", _ratio("nominee_cached", "nominee_evaluations")
    ),
    "calls": TableMetric("calls of models, those taken over included", _column("calls", "reused_calls")),
    "tokens": TableMetric(
        "tokens, those taken over included",
        _column("standalone_prompt_tokens", "standalone_completion_tokens"),
    ),
    "dollars": TableMetric("dollars for calls, those taken over included", _column("standalone_dollars")),
    "total_dollars": TableMetric(
        f"dollars for calls, and for the time of evaluations at ${T4_DOLLARS_PER_HOUR:g} an hour",
        _total_dollars,
    ),
    "seconds": TableMetric(
        "seconds of evaluations, cached ones included", _column("standalone_evaluation_seconds")
    ),
}
SHARES: Mapping[str, ShareMetric] = {
    "libraries": ShareMetric("calls of libraries in the programs that were run", "libraries"),
    "winner_libraries": ShareMetric("calls of libraries in the winners", "winner_libraries"),
    "strategies": ShareMetric("programs by strategy", "strategies"),
    "winner_strategy": ShareMetric("winners by strategy", "winner_strategy"),
}
SERIES: Mapping[str, SeriesMetric] = {
    "best_by_evaluation": SeriesMetric("best error on validation data", "evaluations", "best_by_evaluation"),
    "best_by_round": SeriesMetric("best error of the round", "round", "best_by_round"),
}
