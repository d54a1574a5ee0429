"""What the figures show, taken from the record: errors against evaluations, the lineage, the winner's solution."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite

from sharp.report.blocks import Figure, Paragraph, Section
from sharp.report.drawings import Dot, ErrorChart, Level
from sharp.report.evidence import Evidence
from sharp.report.lineage import lineage_of
from sharp.report.text import error_text, plural
from sharp.stages.state import Execution


def errors(evidence: Evidence) -> Section:
    """Return the chart of errors against evaluations."""
    chart = error_chart(evidence)
    title = "Error against evaluations"
    if not any(dot.error is not None for dot in chart.dots):
        text = "No validation run has given an error, so there is nothing to draw."
        return Section("errors", title, (Paragraph(text),))
    caption = (
        "Each mark is a validation run, filled for the error against the data set and hollow for that against the "
        "true solution. The lines follow the program that leads after each evaluation. Failed runs stand at the top."
    )
    return Section("errors", title, (Figure(chart, caption, _course_in_words(chart)),))


def error_chart(evidence: Evidence) -> ErrorChart:
    """Return every validation run, the leader after each, and the levels to compare them with."""
    dots = tuple(_dot(evidence, number, run) for number, run in enumerate(evidence.validations, start=1))
    judges = dict(enumerate(evidence.run.config.models.judges, start=1)) if evidence.judged else {}
    return ErrorChart(
        dots, tuple(_leaders(evidence, dots)), tuple(_levels(evidence)), judges, evidence.state.best
    )


def lineage(evidence: Evidence) -> Section:
    """Return the lineage of the programs that led to others, came of others, or were nominated."""
    graph = lineage_of(evidence)
    if not graph.layers:
        return Section("lineage", "Lineage", (Paragraph("No program led to another."),))
    shown = sum(len(layer.nodes) for layer in graph.layers)
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
    lines = [f"{edge.parent} → {edge.child}{' (ideas)' if edge.donor else ''}" for edge in graph.edges]
    instead = "; ".join(lines) or f"{plural(shown, 'program')} without descendants."
    return Section("lineage", "Lineage", (Figure(graph, caption, instead),))


def _dot(evidence: Evidence, number: int, run: Execution) -> Dot:
    scores = run.evaluation.scores
    return Dot(
        number,
        run.candidate,
        evidence.judges_of(run.candidate),
        scores.nrmse if scores else None,
        scores.nrmse_truth if scores else None,
        run.candidate == evidence.run_for(evidence.state.best),
    )


def _leaders(evidence: Evidence, dots: tuple[Dot, ...]) -> Iterator[Dot | None]:
    best: tuple[float, Dot] | None = None
    for dot, run in zip(dots, evidence.validations, strict=True):
        if isfinite(run.metric) and (best is None or run.metric < best[0]):
            best = run.metric, dot
        yield best[1] if best else None


def _levels(evidence: Evidence) -> Iterator[Level]:
    floors = (run.evaluation.scores.floor for run in evidence.validations if run.evaluation.scores)
    floor = next((floor for floor in floors if floor is not None), None)
    if floor is not None:
        yield Level("the data set's own distance from the true solution", "floor", floor)
    published = evidence.run.problem.published
    if published is not None:
        yield Level(f"best published error, {published.source}", "published", published.nrmse)


def _course_in_words(chart: ErrorChart) -> str:
    leaders = [leader for leader in chart.leaders if leader is not None]
    steps = dict.fromkeys(leaders)
    course = ", ".join(f"{error_text(dot.error)} ({dot.candidate}, run {dot.number})" for dot in steps)
    levels = "".join(f"; {level.name}: {error_text(level.value)}" for level in chart.levels)
    return f"Best so far: {course}{levels}."
