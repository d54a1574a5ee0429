"""A paired comparison as tables and sentences: what studies, sweeps and comparisons of runs show of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sharp.document import Block, Bullets, Details, Table
from sharp.document.text import MISSING, count_text, number_text
from sharp.experiments.statistics.bootstrap import Interval
from sharp.experiments.statistics.paired import Comparison, GeometricMeans, OnProblem

_COUNTS = ("pairs", "won", "tied", "lost")
_RATIOS = ("ratio", "these problems", "problems like these")
EXPLAINED = (
    "Pairs are runs on the same problem with the same seed. A ratio below 1 means smaller values than the reference's: "
    "it is the median over the pairs of a problem, the geometric mean over problems. Intervals (95 %) are for other "
    "seeds on these problems, and for problems like these; p is that of the sign test over pairs. A pair with a "
    "failure has no ratio: who failed alone has lost it (docs/statistics.md)."
)


def comparison_blocks(
    reference: str, comparisons: Mapping[str, Comparison], stratum: str
) -> tuple[Block, ...]:
    """Return the comparisons of several methods, by name, with the same reference.

    `stratum` says in what pairs are grouped, mostly `problem`.
    """
    columns = (f"against {reference}", *_COUNTS, *_RATIOS, "p", f"without any one {stratum}")
    rows = tuple((name, *_line(comparison)) for name, comparison in comparisons.items())
    table = Table(columns, rows, columns[1:])
    notes = tuple(f"{name}: {note}" for name, each in comparisons.items() for note in each.notes)
    return table, *([Bullets(notes)] if notes else []), *_details(comparisons, stratum)


def ratio_text(ratio: float | None) -> str:
    """Return a ratio in three digits."""
    return number_text(ratio)


def interval_text(interval: Interval | None) -> str:
    """Return an interval as its ends."""
    return MISSING if interval is None else f"{ratio_text(interval.low)} – {ratio_text(interval.high)}"


def without_text(means: GeometricMeans) -> str:
    """Return the least and the most of a geometric mean without one problem, and which are left out for them."""
    known = {value: name for name, value in means.without.items() if value is not None}
    if len(known) < 2:
        return MISSING
    return " – ".join(f"{ratio_text(end)} ({known[end]})" for end in (min(known), max(known)))


def _line(comparison: Comparison) -> Iterator[str]:
    yield from map(count_text, (comparison.pairs, comparison.wins, comparison.ties, comparison.losses))
    yield ratio_text(comparison.ratio)
    yield from map(interval_text, (comparison.these, comparison.like_these))
    yield number_text(comparison.p_value)
    yield without_text(comparison.means)


def _details(comparisons: Mapping[str, Comparison], stratum: str) -> Iterator[Block]:
    columns = (stratum, *_COUNTS, "failed", "failed there", "ratio", "overall without it")
    for name, comparison in comparisons.items():
        if len(comparison.problems) > 1:
            rows = tuple(_on_problem(each, comparison.means) for each in comparison.problems if each.pairs)
            yield Details(f"{name}, by {stratum}", (Table(columns, rows, columns[1:]),))


def _on_problem(each: OnProblem, means: GeometricMeans) -> tuple[str, ...]:
    counts = (each.pairs, each.wins, each.ties, each.losses, each.failed, each.failed_other)
    left = means.without.get(each.problem)
    return each.problem, *map(count_text, counts), ratio_text(each.ratio), ratio_text(left)
