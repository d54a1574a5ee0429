"""When a cycle has saturated and when another follows: pure decisions."""

from __future__ import annotations

from math import inf, isfinite

from sharp.config import SynthesisOptions
from sharp.document import plural
from sharp.tournament.state import Saturation


def decide(
    options: SynthesisOptions,
    *,
    cycle: int,
    round_: int,
    before: float,
    after: float,
    gain: float,
    stale_before: int,
    all_kept: bool,
    measured: bool = True,
) -> Saturation:
    """Decide whether a cycle stops after a round.

    `before` and `after` are the best metrics over everything executed, without and with this round, and `gain` is what
    it gained by the run's objective; `stale_before` counts the stale rounds that led up to it. The nominees' round of
    the first cycle has nothing to be compared with and is never stale; in later cycles it is compared with the
    incumbent. Nor is a round stale before which nothing worked, or where nothing is `measured`. Where every judge keeps
    its program the cycle ends, even if none works: by then every candidate has been run.
    """
    comparable = measured and isfinite(before) and not (cycle == 1 and round_ == 1)
    stale = stale_before + 1 if comparable and gain < options.min_relative_gain else 0
    patience = options.patience if cycle == 1 else options.later_patience
    at_limit = round_ >= options.max_rounds
    saturated = options.next_cycle != "fixed" and (stale >= patience or all_kept)
    return Saturation(
        cycle=cycle,
        round=round_,
        best_before=before,
        best_by_evaluation=after,
        gain=gain,
        stale_rounds=stale,
        patience=patience,
        stop=saturated or at_limit,
        reason=_reason(
            saturated, at_limit, all_kept=all_kept, stale=stale, tolerance=options.min_relative_gain
        ),
    )


def _reason(saturated: bool, at_limit: bool, *, all_kept: bool, stale: int, tolerance: float) -> str:
    if saturated and all_kept:
        return "saturated: every judge keeps its program"
    if saturated:
        return f"saturated: gain below {tolerance:.2%} in {plural(stale, 'consecutive round')}"
    return "round limit reached" if at_limit else "goes on"


def another_cycle(options: SynthesisOptions, last: Saturation) -> bool:
    """Return whether another judging cycle follows the one that ended with `last`."""
    if last.cycle >= options.max_cycles or options.next_cycle == "never":
        return False
    if options.next_cycle in ("always", "fixed"):
        return True
    return not last.reason.startswith("saturated")


def best_metric(metrics: list[float]) -> float:
    """Return the smallest metric, +inf of none; NaN never wins."""
    return min((value for value in metrics if value == value), default=inf)
