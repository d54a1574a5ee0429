"""From frames to tables: rows as texts, groups of repeats with their spread, runs compared in pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose, isfinite
from typing import Any

from pandas import DataFrame

from sharp.document import Block, Bullets, Heading, Note, Paragraph, Section, Table
from sharp.document.text import MISSING, count_text, number_text, plural
from sharp.experiments.frame import axes_of, finished, plain, plain_rows, select
from sharp.experiments.statistics.evaluations_to_target import EvaluationsToTarget, evaluations_to_target
from sharp.experiments.statistics.paired import Comparison, compare
from sharp.experiments.statistics.paired_blocks import EXPLAINED, comparison_blocks
from sharp.experiments.statistics.spread import QuartileSummary, quartile_summary
from sharp.llm.model_costs import BreakEven
from sharp.report.data_error_flags import flag_of, marked_error

METHOD, PROBLEM, SEED = "method", "problem", "seed"
Group = tuple[tuple[Any, ...], DataFrame]

_ERRORS = {
    "nrmse": "Errors on test data",
    "nrmse_reference": "Errors on test data against the true solution",
}
_COSTS = {
    "evaluations": "evaluations",
    "executions": "executions",
    "standalone_evaluation_seconds": "program-seconds",
    "standalone_gpu_seconds": "GPU-seconds",
    "standalone_dollars": "dollars",
}
_BASELINE = "_baseline"


@dataclass(frozen=True)
class Column:
    """A column of a table: its title, the text that it shows of a row, and whether that is a number."""

    title: str
    text: Callable[[Mapping[str, Any]], str]
    number: bool = True


def shown(value: Any) -> str:
    """Return a value, such as one on an axis, as tables show it; a whole number without decimals."""
    known = plain(value)
    if isinstance(known, float) and known.is_integer():
        known = int(known)
    return MISSING if known is None else str(known)


def text(title: str, name: str = "") -> Column:
    """Return a column that shows a value as it is."""
    return Column(title, lambda row: shown(row[name or title]) or MISSING, number=False)


def number(title: str, name: str = "", as_text: Callable[[Any], str] = count_text) -> Column:
    """Return a column of numbers."""
    return Column(title, lambda row: as_text(row[name or title]))


def table(frame: DataFrame, columns: Sequence[Column], caption: str = "") -> Table:
    """Return a frame as a table."""
    rows = tuple(tuple(column.text(row) for column in columns) for row in plain_rows(frame))
    titles = tuple(column.title for column in columns)
    return Table(titles, rows, tuple(column.title for column in columns if column.number), caption)


def groups(frame: DataFrame, names: Sequence[str]) -> list[Group]:
    """Return the rows that agree on some columns, with their plain values, in the order in which these come up."""
    if not names:
        return [((), frame)] if len(frame) else []
    found = frame.groupby(list(names), sort=False, dropna=False)
    return [(tuple(map(plain, key)), group) for key, group in found]


def total(values: Iterable[Any]) -> Any:
    """Return a sum, None if a value is unknown."""
    known = list(map(plain, values))
    return None if None in known else sum(known)


def range_text(low: str, high: str) -> str:
    """Return two ends of a range, one of equal ends."""
    return low if low == high else f"{low} – {high}"


def over_seeds(frame: DataFrame) -> Section | None:
    """Return median and spread over seeds; None if nothing was repeated."""
    axes = [name for name in axes_of(frame) if name != SEED]
    repeats = groups(finished(frame), axes) if SEED in axes_of(frame) else []
    if not any(len(runs) > 1 for _, runs in repeats):
        return None
    errors = [
        f"{name}, {what}"
        for name in ("error", "against reference")
        for what in ("median", "quartiles", "range")
    ]
    counts = [
        f"{name}, {what}"
        for name in ("evaluations", "executions", "GPU-seconds")
        for what in ("median", "range")
    ]
    numbers = ("runs", "failed", *errors, *counts)
    rows = tuple((*map(shown, key), *_repeats(runs)) for key, runs in repeats)
    explained = Paragraph(
        "Runs are those that have finished. One in which no program ran has failed: it counts as an infinite error in "
        "the median and the quartiles, shown as failed. Marks are those of the results above."
    )
    return Section("seeds", "Over seeds", (explained, Table((*axes, *numbers), rows, numbers)))


def _repeats(runs: DataFrame) -> Iterator[str]:
    floors = runs["data_error"].dropna().unique()
    floor = float(floors[0]) if len(floors) == 1 else None
    yield count_text(len(runs))
    yield count_text(int(runs["nrmse"].isna().sum()))
    yield from _error_spread(runs["nrmse"], floor)
    yield from _error_spread(runs["nrmse_reference"], None)
    for name in ("evaluations", "executions", "standalone_gpu_seconds"):
        found = quartile_summary(map(plain, runs[name]))
        yield number_text(found.median)
        yield range_text(number_text(found.least), number_text(found.most))


def _error_spread(values: Iterable[Any], floor: float | None) -> Iterator[str]:
    found = quartile_summary(map(plain, values))
    if found.failed == found.count:
        yield from (MISSING, MISSING, MISSING)
        return

    def text(error: float) -> str:
        return marked_error(error, flag_of(error, floor)) if isfinite(error) else "failed"

    yield text(found.median)
    yield range_text(text(found.lower), text(found.upper))
    yield range_text(text(found.least), text(found.most))


@dataclass(frozen=True)
class Pairing:
    """Finished runs by value of an axis, each to be compared with those of the reference value.

    Frames have the columns `case`, which is what runs are compared on, and `repeat`, which tells runs on a case apart.
    """

    reference: str
    baseline: DataFrame
    others: Mapping[str, DataFrame]

    @classmethod
    def of(
        cls, runs: DataFrame, axis: str, reference: str, cases: Iterable[str], repeats: Iterable[str]
    ) -> Pairing:
        """Return the runs of each value of an axis, with the case and the repeat of each run."""
        known = runs.assign(case=list(cases), repeat=list(repeats))
        by_value = {shown(key[0]): group for key, group in groups(known, [axis])}
        baseline = by_value.pop(reference, known.iloc[:0])
        return cls(reference, baseline, {name: each for name, each in by_value.items() if name != MISSING})

    def paired(self) -> dict[str, DataFrame]:
        """Return the pairs of each value that has any; columns of the reference end in `_baseline`."""
        found = {
            value: runs.merge(self.baseline, on=["case", "repeat"], suffixes=("", _BASELINE))
            for value, runs in self.others.items()
        }
        return {value: pairs for value, pairs in found.items() if len(pairs)}

    def compared(self, metric: str) -> dict[str, Comparison]:
        """Compare a metric, by value; of one value that shares no case with the reference as well."""
        reference = _by_case(self.baseline, metric)
        return {value: compare(_by_case(runs, metric), reference) for value, runs in self.others.items()}


def joined(frame: DataFrame, names: Sequence[str]) -> list[str]:
    """Return the values of some columns as one text a row."""
    return [" · ".join(map(shown, values)) for values in zip(*(frame[name] for name in names), strict=True)]


def reached(pairs: DataFrame, series: str = "best_by_evaluation") -> list[EvaluationsToTarget]:
    """Return how far each run had to go for the error that its partner ended with."""
    found = (
        evaluations_to_target(own, other)
        for own, other in zip(pairs[series], pairs[series + _BASELINE], strict=True)
        if plain(own) is not None and plain(other) is not None
    )
    return [each for each in found if each is not None]


def reaching_table(
    names: Sequence[str], reference: str, found: Mapping[Any, Sequence[EvaluationsToTarget]], caption: str
) -> Table:
    """Return after how many evaluations runs had the error of their partners, by names; never counts as infinite."""
    own = ("pairs", "reached", "needed: median", "least", "most")
    numbers = (*own, f"{reference} needed: median", f"{reference} made: median")
    rows = tuple((*key, *_reaching(each)) for key, each in found.items() if each)
    return Table((*names, *numbers), rows, numbers, caption)


def _reaching(found: Sequence[EvaluationsToTarget]) -> Iterator[str]:
    needed = quartile_summary(each.needed for each in found)
    yield count_text(needed.count)
    yield count_text(needed.count - needed.failed)
    for value in (needed.median, needed.least, needed.most):
        yield number_text(value) if isfinite(value) else "never"
    yield number_text(quartile_summary(each.baseline_needed for each in found).median)
    yield number_text(quartile_summary(each.baseline_used for each in found).median)


def spread_of(values: Iterable[Any]) -> QuartileSummary | None:
    """Return the spread of repeats, of which missing ones have failed; None without any."""
    known = list(map(plain, values))
    return quartile_summary(known) if known else None


def paired_section(frame: DataFrame) -> Section | None:
    """Return the comparisons along every axis but problem and seed, the method's first; None without a pair.

    Each value is compared with the first of its axis, on the same problem with the same seed and data, all else alike.
    """
    axes = sorted(axes_of(frame), key=lambda name: name != METHOD)
    blocks = [block for axis in axes if axis not in (PROBLEM, SEED) for block in _along(frame, axis, axes)]
    return Section("paired", "Compared in pairs", (Paragraph(EXPLAINED), *blocks)) if blocks else None


def _along(frame: DataFrame, axis: str, axes: Sequence[str]) -> Iterator[Block]:
    others = [name for name in axes if name not in (axis, PROBLEM, SEED)]
    runs = finished(frame)
    repeats = (
        f"seed {shown(seed)} on {data}"
        for seed, data in zip(runs[SEED] if SEED in axes else [None] * len(runs), runs["data"], strict=True)
    )
    first = next((shown(value) for value in frame[axis] if plain(value) is not None), "")
    pairing = Pairing.of(runs, axis, first, joined(runs, [PROBLEM, *others]), repeats)
    pairs = pairing.paired()
    if not pairs:
        return
    yield Heading(f"{axis}: against {first}")
    for metric, title in _ERRORS.items():
        yield Paragraph(f"{title}:")
        compared = {value: each for value, each in pairing.compared(metric).items() if value in pairs}
        yield from comparison_blocks(first, compared, "case" if others else PROBLEM)
    yield from _at_floor(pairs)
    found = {(value,): reached(_of_errors(each)) for value, each in pairs.items()}
    if any(found.values()):
        caption = f"Evaluations until a run had {first}'s best validation error"
        yield reaching_table([f"against {first}"], first, found, caption)
    yield from _costs(first, pairs)


def _by_case(runs: DataFrame, metric: str) -> dict[str, dict[str, float | None]]:
    found: dict[str, dict[str, float | None]] = {}
    for case, repeat, value in zip(runs["case"], runs["repeat"], runs[metric], strict=True):
        found.setdefault(case, {})[repeat] = plain(value)
    return found


def _at_floor(pairs: Mapping[str, DataFrame]) -> Iterator[Block]:
    """Say in how many pairs errors against the data set cannot tell which is the more accurate."""
    floored = sum(
        int(((each["flag"] != "") & (each["flag" + _BASELINE] != "")).sum()) for each in pairs.values()
    )
    if floored:
        yield Note(
            f"In {floored} of {plural(sum(map(len, pairs.values())), 'pair')} both errors on test data are at or below "
            "the floor: there the smaller one is no greater accuracy, and only the errors against the true solution "
            "tell.",
            "warning",
        )


def _of_errors(pairs: DataFrame) -> DataFrame:
    """Return the pairs of which both were ranked by their validation errors, and not by other metrics."""
    for side in ("", _BASELINE):
        columns = (pairs[f"best_by_evaluation{side}"], pairs[f"validation_nrmse{side}"])
        ranked = (_ranked_by_error(best, plain(error)) for best, error in zip(*columns, strict=True))
        pairs = select(pairs, ranked)
    return pairs


def _ranked_by_error(best: Sequence[float | None], error: float | None) -> bool:
    last = best[-1] if best else None
    return bool(best) if last is None else error is not None and isclose(last, error)


def _costs(first: str, pairs: Mapping[str, DataFrame]) -> Iterator[Block]:
    titles = [title for name in _COSTS.values() for title in (name, f"{name}, {first}")]
    sums = {
        value: {name: total(each[name]) for cost in _COSTS for name in (cost, cost + _BASELINE)}
        for value, each in pairs.items()
    }
    rows = tuple((value, count_text(len(pairs[value])), *_cost_texts(each)) for value, each in sums.items())
    columns = (f"against {first}", "pairs", *titles)
    yield Table(
        columns, rows, columns[1:], "What the pairs cost together, as if nothing were shared or cached"
    )
    if all((each[f"rule_based{side}"] == "all").all() for each in pairs.values() for side in ("", _BASELINE)):
        yield Paragraph(
            "The rule-based model asks no money for its answers, so nothing can be said of break-even."
        )
    else:
        yield Bullets(
            tuple(f"{value}: {_break_even(first, each).sentence()}." for value, each in sums.items())
        )


def _cost_texts(sums: Mapping[str, float | None]) -> Iterator[str]:
    for name, value in sums.items():
        counted = name.startswith(("evaluations", "executions"))
        yield count_text(int(value or 0)) if counted else number_text(value)


def _break_even(first: str, sums: Mapping[str, float | None]) -> BreakEven:
    def saved(name: str) -> int:
        return int((sums[name + _BASELINE] or 0) - (sums[name] or 0))

    own, other = sums["standalone_dollars"], sums["standalone_dollars" + _BASELINE]
    extra = None if own is None or other is None else own - other
    return BreakEven(first, extra, saved("evaluations"), saved("executions"))
