"""What the figures show, taken from the record: errors against evaluations, the lineage, the winner's solution."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite

from sharp.document import Curve, CurveStyle, Figure, Level, Panels, Paragraph, ScatterPanel, Section, Spot
from sharp.document.text import error_text, plural
from sharp.report.data_error_flags import floor_levels
from sharp.report.lineage import lineage_of
from sharp.report.report_data import ReportData
from sharp.tournament.state import Execution

TRUTH = "best so far, against the true solution"
DATA = "best so far, against the data set"


def errors(evidence: ReportData) -> Section:
    """Return the chart of errors against evaluations."""
    panel = error_panel(evidence)
    title = "Error against evaluations"
    if not any(spot.error is not None for spot in panel.spots):
        text = "No validation run has given an error, so there is nothing to draw."
        return Section("errors", title, (Paragraph(text),))
    caption = (
        "Each mark is a validation run, filled for the error against the data set and hollow for that against the "
        "true solution. The lines follow the program that leads after each evaluation. Failed runs are above the chart."
    )
    chart = Panels(
        "error-chart", title, "error (nRMSE)", (panel,), "evaluation (run on validation data)", wide=True
    )
    return Section("errors", title, (Figure(chart, caption, _trace_text(evidence, panel)),))


def error_panel(evidence: ReportData) -> ScatterPanel:
    """Return every validation run, the errors of the leader after each, and the levels to compare them with."""
    runs = evidence.validations
    spots = tuple(_spot(evidence, number, run) for number, run in enumerate(runs, start=1))
    leaders = [(number, scores) for number, run in _leaders(runs) if (scores := run.evaluation.scores)]
    truth = [
        (number, scores.nrmse_reference) for number, scores in leaders if scores.nrmse_reference is not None
    ]
    data = [(number, scores.nrmse) for number, scores in leaders]
    styles: tuple[CurveStyle, ...] = ("dashed", "solid")
    lines = (
        Curve.of(name, [x for x, _ in line], [y for _, y in line], style)
        for name, line, style in zip((TRUTH, DATA), (truth, data), styles, strict=True)
        if line
    )
    return ScatterPanel("", spots, tuple(_levels(evidence)), tuple(lines), counted=True)


def lineage(evidence: ReportData) -> Section:
    """Return the lineage of the programs that led to others, came of others, or were nominated."""
    graph = lineage_of(evidence)
    if not graph.rows:
        return Section("lineage", "Lineage", (Paragraph("No program led to another."),))
    shown = sum(len(row.nodes) for row in graph.rows)
    rest = len(evidence.state.candidates) - shown
    made = "Solid lines lead from a base to the program made of it, dashed ones from a donor of ideas."
    if evidence.state.search:
        made = (
            "Solid lines lead to a program from the best of those that its prompt showed, and to a repair; dashed ones "
            "from the others that the prompt showed."
        )
    caption = f"Time runs downwards. {made} Programs that led nowhere are kept."
    if rest:
        nor = " and that no judge nominated" if evidence.judged else ""
        caption += f" Left out: {plural(rest, 'program')} that led to no other{nor}."
    lines = [f"{edge.source} → {edge.target}{' (ideas)' if edge.minor else ''}" for edge in graph.edges]
    instead = "; ".join(lines) or f"{plural(shown, 'program')} without descendants."
    return Section("lineage", "Lineage", (Figure(graph, caption, instead),))


def _spot(evidence: ReportData, number: int, run: Execution) -> Spot:
    scores, judges = run.evaluation.scores, evidence.judges_of(run.candidate)
    made_for = f" (judge {', '.join(map(str, judges))})" if judges else ""
    return Spot(
        _group(evidence, judges),
        "",
        f"{run.candidate}{made_for}",
        number,
        scores.nrmse if scores else None,
        scores.nrmse_reference if scores else None,
        best=run.candidate == evidence.run_for(evidence.state.best),
    )


def _group(evidence: ReportData, judges: tuple[int, ...]) -> str:
    if judges:
        return f"judge {judges[0]} ({evidence.run.config.models.judges[judges[0] - 1]})"
    chosen = any(evidence.judges_of(run.candidate) for run in evidence.validations)
    return "program that no judge chose" if chosen else "program"


def _leaders(runs: Sequence[Execution]) -> Iterator[tuple[int, Execution]]:
    """Yield the number of each run, from the first with a result on, with the best run so far."""
    best: Execution | None = None
    for number, run in enumerate(runs, start=1):
        if isfinite(run.metric) and (best is None or run.metric < best.metric):
            best = run
        if best is not None:
            yield number, best


def _levels(evidence: ReportData) -> Iterator[Level]:
    floors = (run.evaluation.scores.data_error for run in evidence.validations if run.evaluation.scores)
    floor = next((floor for floor in floors if floor is not None), None)
    yield from floor_levels(floor)
    published = evidence.run.problem.published
    if published is not None:
        yield Level(f"best published error, {published.source}", "published", published.nrmse)


def _trace_text(evidence: ReportData, panel: ScatterPanel) -> str:
    leaders = {run.candidate: number for number, run in reversed(list(_leaders(evidence.validations)))}
    errors = {run.candidate: run.evaluation.scores for run in evidence.validations}
    trace = ", ".join(
        f"{error_text(scores.nrmse)} ({name}, run {number})"
        for name, number in reversed(leaders.items())
        if (scores := errors[name])
    )
    levels = "".join(f"; {level.name}: {error_text(level.value)}" for level in panel.levels)
    return f"Best so far: {trace}{levels}."
