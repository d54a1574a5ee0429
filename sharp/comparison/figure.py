"""The figures of a comparison: error against total cost (R52), and the best error so far against evaluations."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from statistics import median

from sharp.comparison.entry import Entry
from sharp.comparison.pairs import by_problem
from sharp.report.blocks import Figure
from sharp.report.panels import Curve, CurvePanel, Panels, Point, ScatterPanel, Spot
from sharp.report.text import error_text, number_text
from sharp.sweeps.row import Course


def cost_figure(entries: Sequence[Entry]) -> Figure | None:
    """Return the figure of errors on test data against dollars, or against evaluations where there are no dollars.

    None where no run has an error on test data.
    """
    scored = [entry for entry in entries if entry.row.nrmse is not None]
    if not scored:
        return None
    priced = [entry for entry in scored if entry.dollars is not None]
    in_dollars = any(entry.dollars for entry in priced)
    shown = priced if in_dollars else scored
    panels = tuple(_spots(problem, group, in_dollars) for problem, group in by_problem(shown).items())
    across = _across(shown) if in_dollars else "evaluations"
    without = [_name(entry) for entry in entries if entry.row.nrmse is None]
    drawn = Panels(
        "cost",
        f"Error against {'total cost' if in_dollars else 'evaluations'}",
        "error (nRMSE)",
        panels,
        across,
    )
    caption = _caption(scored, shown, in_dollars) + (
        f" Not drawn, for they have no error on test data: {', '.join(without)}." if without else ""
    )
    return Figure(drawn, caption, _in_words(shown, across))


def course_figure(entries: Sequence[Entry]) -> Figure | None:
    """Return the figure of the best validation result so far against evaluations; None where no run has any.

    Runs that repeat each other with other seeds make one curve, their median with its range.
    """
    known = [entry for entry in entries if entry.row.best_after and set(entry.feedback) == {"nrmse"}]
    panels = tuple(_courses(problem, group) for problem, group in by_problem(known).items())
    if not any(curve.points for panel in panels for curve in panel.curves):
        return None
    drawn = Panels("course", "Best so far", "error (nRMSE)", panels, "evaluation (run on validation data)")
    caption = (
        "The best error on validation data after each evaluation. Runs that differ in nothing but the seed make one "
        "curve, their median with its range; a run that has ended keeps what it has."
    )
    words = "; ".join(
        f"{_name(e)}: {error_text(e.validation_error)} after {e.row.evaluations} evaluations" for e in known
    )
    return Figure(drawn, caption, f"Best errors on validation data: {words}.")


def course_curve(name: str, courses: Sequence[Course]) -> Curve:
    """Return the median of best results so far with their range, from where every run has one."""
    points = []
    best: list[float | None] = [None] * len(courses)
    for number, now in enumerate(zip_longest(*courses), start=1):
        best = [after if after is not None else before for before, after in zip(best, now, strict=True)]
        known = [value for value in best if value is not None]
        if known and len(known) == len(courses):
            points.append(Point(number, median(known), min(known), max(known)))
    return Curve(name, tuple(points))


def _spots(problem: str, group: Sequence[Entry], in_dollars: bool) -> ScatterPanel:
    spots = tuple(
        Spot(
            entry.variant,
            f"#{entry.number}",
            f"{_name(entry)}, {entry.variant}",
            _taken(entry, in_dollars),
            entry.row.nrmse or 0.0,
            entry.row.nrmse_truth,
            entry.row.flag == "below",
        )
        for entry in group
    )
    return ScatterPanel(problem, spots, _floor(group))


def _courses(problem: str, group: Sequence[Entry]) -> CurvePanel:
    repeats: dict[str, list[Entry]] = defaultdict(list)
    for entry in group:
        repeats[entry.setup].append(entry)
    variants = Counter(known[0].variant for known in repeats.values())
    curves = (
        course_curve(_curve_name(known, variants), [entry.row.best_after for entry in known])
        for known in repeats.values()
    )
    return CurvePanel(problem, tuple(curves))


def _curve_name(repeats: Sequence[Entry], variants: Mapping[str, int]) -> str:
    """Return the variant of some runs, with their numbers where others with another setup have the same."""
    variant = repeats[0].variant
    numbers = ", ".join(f"#{entry.number}" for entry in repeats)
    return variant if variants[variant] == 1 else f"{variant} ({numbers})"


def _taken(entry: Entry, in_dollars: bool) -> float:
    return (entry.dollars or 0.0) if in_dollars else float(entry.row.evaluations)


def _floor(group: Sequence[Entry]) -> float | None:
    """Return the floor of the data set, None where runs have different ones."""
    floors = {entry.row.floor for entry in group}
    return floors.pop() if len(floors) == 1 else None


def _across(shown: Sequence[Entry]) -> str:
    with_gpu = any(entry.gpu_price is not None for entry in shown)
    return "dollars for language models" + (" and GPU time" if with_gpu else "")


def _caption(scored: Sequence[Entry], shown: Sequence[Entry], in_dollars: bool) -> str:
    caption = (
        "Each mark is a run by its number: filled for the winner's error on test data against the data set, hollow for "
        "that against the true solution."
    )
    if not in_dollars:
        return f"{caption} All costs are zero or unknown, so evaluations stand in their place."
    missing = [_name(entry) for entry in scored if entry not in shown]
    zero = [_name(entry) for entry in shown if not entry.dollars]
    if zero:
        caption += f" Runs that cost nothing stand at the left end: {', '.join(zero)}."
    return caption + (f" Left out, for their cost is unknown: {', '.join(missing)}." if missing else "")


def _in_words(shown: Sequence[Entry], across: str) -> str:
    told: Mapping[str, str] = {
        _name(
            entry
        ): f"{number_text(_taken(entry, across != 'evaluations'))} {across}, error {error_text(entry.row.nrmse)}"
        for entry in shown
    }
    return "; ".join(f"{name}: {text}" for name, text in told.items()) + "."


def _name(entry: Entry) -> str:
    return f"#{entry.number} {entry.name}"
