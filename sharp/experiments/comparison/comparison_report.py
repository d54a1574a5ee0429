"""A comparison as a page and as text: what runs found, what they took, and when that pays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from pandas import DataFrame

from sharp.document import (
    Block,
    Bullets,
    CurvePanel,
    Figure,
    Heading,
    Headline,
    Note,
    Panels,
    Paragraph,
    Report,
    ScatterPanel,
    Section,
    Spot,
    Table,
)
from sharp.document.text import MISSING, duration_text, error_text, number_text, plural
from sharp.experiments.comparison.compared_runs import (
    Comparison,
    Row,
    break_evens,
    display_name,
    models_of,
    notes,
    price_text,
)
from sharp.experiments.frame import FAILED, finished, select
from sharp.experiments.publishing import ExperimentFiles, publish
from sharp.experiments.tables import Column, best_error_curve, common_floor, groups, number, table, text
from sharp.report.data_error_flags import LEGEND, floor_levels, marked_error
from sharp.report.prices import price_table

_RUN = (Column("#", lambda run: str(run["number"]), number=False), text("run", "name"))
_PLAYED = {"all": " (rule-based)", "some": " (some by the rule-based model)"}


def _models(run: Row) -> str:
    models = ", ".join(models_of(run))
    return models if models == "rule-based" else models + _PLAYED.get(run["rule_based"], "")


def _dollars(title: str, name: str, unknown: str = "unknown") -> Column:
    return number(title, name, lambda dollars: unknown if dollars is None else f"{dollars:.4g}")


def _served(run: Row) -> str:
    if not run["served_gpu_hours"]:
        return MISSING
    return "unknown" if run["served_dollars"] is None else f"{run['served_dollars']:.4g}"


TABLES: Mapping[str, tuple[Column, ...]] = {
    "Errors of winners on test data": (
        *_RUN,
        text("method", "variant"),
        Column("models", _models, number=False),
        text("seed"),
        text("state"),
        Column("error", lambda run: marked_error(run["nrmse"], run["flag"])),
        number("against reference", "nrmse_reference", error_text),
        number("on validation data", "validation_error", error_text),
        text("winner"),
    ),
    "Runs of programs": (
        *_RUN,
        number("evaluations"),
        number("from the cache", "cached_evaluations"),
        number("executions"),
        number("debug runs", "debug_runs"),
        Column("failed", lambda run: str(sum(run[name] for name in FAILED))),
        number("GPU time", "standalone_gpu_seconds", duration_text),
        number("run time", "standalone_evaluation_seconds", duration_text),
        number("wall time", "seconds", duration_text),
    ),
    "Calls and tokens of language models": (
        *_RUN,
        number("calls", "all_calls"),
        number("given by others", "reused_calls"),
        number("prompt tokens", "standalone_prompt_tokens"),
        number("of these cached", "standalone_cached_tokens"),
        number("completion tokens", "standalone_completion_tokens"),
        number("of these reasoning", "standalone_reasoning_tokens"),
    ),
    "Dollars": (
        *_RUN,
        _dollars("billed", "billed_dollars"),
        number("GPU-hours of servers", "served_gpu_hours", lambda hours: number_text(hours or None)),
        Column("for these", _served),
        _dollars("for GPU time of runs", "evaluation_dollars", MISSING),
        _dollars("altogether", "total_dollars"),
    ),
}


def publish_comparison(compared: Comparison, folder: Path) -> ExperimentFiles:
    """Write the comparison as compare.html, .md, .csv and .parquet, and the figure of costs as cost.svg."""
    figures = {"cost": cost_figure(compared)}
    return publish(folder, "compare", build_report(compared), "compare", compared.rows, figures)


def build_report(compared: Comparison) -> Report:
    """Return the whole document."""
    problems = compared.by_problem()
    sections = (
        Section(f"problem-{i}", name, tuple(_problem(group)))
        for i, (name, group) in enumerate(problems.items(), 1)
    )
    best = (_lowest(problem, group) for problem, group in problems.items())
    found = [
        f"{plural(len(compared.rows), 'run')} of {plural(len(problems), 'problem')}",
        *filter(None, best),
    ]
    return Report(
        title=f"Comparison of {plural(len(compared.rows), 'run')}",
        headline=Headline("; ".join(found) + ".", bool((compared.rows["flag"] == "below").any())),
        notes=(),
        sections=(*sections, *_figures(compared), _prices(compared)),
    )


def comparison_overview(compared: Comparison) -> Iterator[Block]:
    """Yield the comparison for a terminal: for each problem its tables, the break-even, and what to beware of."""
    for problem, group in compared.by_problem().items():
        yield Heading(problem)
        yield from tables(group)
        if any(run["flag"] for run in group.runs):
            yield Paragraph(LEGEND)
        for title, lines in (("Break-even", break_even_lines(group)), ("Beware", tuple(notes(group)))):
            if lines:
                yield from (Heading(title), Bullets(lines))


def tables(group: Comparison) -> tuple[Table, ...]:
    """Return what runs of one problem found, what programs and models took, and what that cost."""
    return tuple(table(group.rows, columns, caption) for caption, columns in TABLES.items())


def break_even_lines(group: Comparison) -> tuple[str, ...]:
    """Return the break-even of each run against the first of its problem, as sentences."""
    names = {run["number"]: display_name(run) for run in group.runs}
    return tuple(f"{names[number]}: {found.sentence()}" for number, found in break_evens(group).items())


def _lowest(problem: str, group: Comparison) -> str:
    """Return the lowest error of finished runs with the same data and samples, as a sentence."""
    scored = finished(group.rows).dropna(subset=["nrmse"])
    same = scored[["data", "validation_samples", "test_samples"]].drop_duplicates()
    if len(scored) < 2 or len(same) > 1:
        return ""
    best = scored.loc[scored["nrmse"].idxmin()]
    floor = ", below the data's own floor" if best["flag"] == "below" else ""
    return f"{problem}: lowest error {error_text(best['nrmse'])} ({display_name(best)}{floor})"


def _problem(group: Comparison) -> Iterator[Block]:
    yield from (Note(text, "warning") for text in notes(group))
    results, *rest = tables(group)
    yield results
    if any(run["flag"] for run in group.runs):
        yield Paragraph(LEGEND)
    yield from rest
    lines = break_even_lines(group)
    if lines:
        yield Paragraph(f"Break-even against {display_name(group.runs[0])}, the first run given:")
        yield Bullets(lines)


def _figures(compared: Comparison) -> Iterator[Section]:
    for anchor, figure in (("cost", cost_figure(compared)), ("course", best_error_figure(compared))):
        if figure is not None and isinstance(figure.chart, Panels):
            yield Section(f"{anchor}-figure", figure.chart.title, (figure,))


def _prices(compared: Comparison) -> Section:
    price = compared.gpu_price
    time = (
        "No hourly price of the GPU that programs run on was given, so that their time costs nothing here."
        if price is None
        else f"An hour of the GPU that programs run on is taken at ${price:g}."
    )
    accounting = Paragraph(
        "Every run is counted as if it stood alone: answers that another run gave, and results from the cache, count "
        "with the tokens and seconds that they took where they were made; only the wall time is that of the run as it "
        f"was. {time} Evaluations are runs on validation data; executions are these with the short runs before them "
        "and the runs of repaired programs; GPU time and run time are those of all runs of programs, the checks and "
        "the test run at the end included. Prices are those that the runs were frozen with."
    )
    # A model with different prices stands there once for each.
    cards = {
        (name, price_text(card)): card
        for number in compared.rows["number"]
        for name, card in sorted(compared.cards[number].items())
    }
    listed = [price_table(cards.values())] if cards else []
    return Section("prices", "Prices and accounting", (accounting, *listed))


def cost_figure(compared: Comparison) -> Figure | None:
    """Return the figure of errors on test data against dollars, or against evaluations if there are no dollars.

    None if no run has an error on test data.
    """
    scored, without = compared.rows.dropna(subset=["nrmse"]), compared.rows[compared.rows["nrmse"].isna()]
    if not len(scored):
        return None
    priced = scored.dropna(subset=["total_dollars"])
    in_dollars = bool((priced["total_dollars"] > 0).any())
    shown, cost = (priced, "total_dollars") if in_dollars else (scored, "evaluations")
    gpu = " and GPU time" if compared.gpu_price is not None else ""
    across = f"dollars for language models{gpu}" if in_dollars else "evaluations"
    panels = tuple(
        ScatterPanel(problem, _spots(group, cost), floor_levels(common_floor(group)))
        for problem, group in shown.groupby("problem", sort=False)
    )
    title = f"Error against {'total cost' if in_dollars else 'evaluations'}"
    told = (
        f"{display_name(run)}: {number_text(float(run[cost]))} {across}, error {error_text(run['nrmse'])}"
        for _, run in shown.iterrows()
    )
    caption = _caption(scored, shown, in_dollars) + (
        f" Not drawn, for they have no error on test data: {_names(without)}." if len(without) else ""
    )
    return Figure(Panels("cost", title, "error (nRMSE)", panels, across), caption, "; ".join(told) + ".")


def _spots(group: DataFrame, cost: str) -> tuple[Spot, ...]:
    return tuple(
        Spot(
            run["variant"],
            f"#{run['number']}",
            f"{display_name(run)}, {run['variant']}",
            float(run[cost]),
            run["nrmse"],
            None if run["nrmse_reference"] != run["nrmse_reference"] else run["nrmse_reference"],
            run["flag"] == "below",
        )
        for _, run in group.iterrows()
    )


def _caption(scored: DataFrame, shown: DataFrame, in_dollars: bool) -> str:
    caption = (
        "Each mark is a run by its number: filled for the winner's error on test data against the data set, hollow for "
        "that against the true solution."
    )
    if not in_dollars:
        return f"{caption} All costs are zero or unknown, so evaluations stand in their place."
    zero, missing = shown[shown["total_dollars"] == 0], scored.drop(shown.index)
    if len(zero):
        caption += f" Runs that cost nothing stand at the left end: {_names(zero)}."
    return caption + (f" Left out, for their cost is unknown: {_names(missing)}." if len(missing) else "")


def _names(runs: DataFrame) -> str:
    return ", ".join(display_name(run) for _, run in runs.iterrows())


def best_error_figure(compared: Comparison) -> Figure | None:
    """Return the figure of the best validation result so far against evaluations; None if no run has any.

    Runs that repeat each other with other seeds make one curve, their median with its range.
    """
    ranked = [bool(run["best_by_evaluation"]) and set(run["feedback"]) == {"nrmse"} for run in compared.runs]
    known = select(compared.rows, ranked)
    panels = tuple(_curves(problem, group) for problem, group in known.groupby("problem", sort=False))
    if not any(curve.points for panel in panels for curve in panel.curves):
        return None
    caption = (
        "The best error on validation data after each evaluation. Runs that differ in nothing but the seed make one "
        "curve, their median with its range; a run that has ended keeps what it has."
    )
    words = "; ".join(
        f"{display_name(run)}: {error_text(run['validation_error'])} after {run['evaluations']} evaluations"
        for _, run in known.iterrows()
    )
    drawn = Panels("course", "Best so far", "error (nRMSE)", panels, "evaluation (run on validation data)")
    return Figure(drawn, caption, f"Best errors on validation data: {words}.")


def _curves(problem: str, group: DataFrame) -> CurvePanel:
    repeats = [runs for _, runs in groups(group, ["setup"])]
    variants = Counter(runs["variant"].iloc[0] for runs in repeats)
    return CurvePanel(
        problem,
        tuple(
            best_error_curve(_curve_name(runs, variants), list(runs["best_by_evaluation"]))
            for runs in repeats
        ),
    )


def _curve_name(repeats: DataFrame, variants: Mapping[str, int]) -> str:
    """Return the variant of some runs, with their numbers if others with another setup have the same."""
    variant: str = repeats["variant"].iloc[0]
    numbers = ", ".join(f"#{number}" for number in repeats["number"])
    return variant if variants[variant] == 1 else f"{variant} ({numbers})"
