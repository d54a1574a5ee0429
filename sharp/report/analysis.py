"""The analysis stage: each check's verdict, the bounds on the time step, and the whole answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sharp.document import Block, Details, ModelText, Paragraph, Section, Table
from sharp.document.text import number_text, one_line
from sharp.report.report_data import ReportData
from sharp.tournament.state import GeneratedPrompts, StabilityBound

BRANCH = {
    "analytical": "programs evaluate an analytical solution",
    "transformed": "programs solve a transformed equation",
    "hybrid": "programs split the problem into parts",
    "numerical": "programs solve the equation numerically",
}


def analysis(evidence: ReportData) -> Section:
    """Return what the analysis found."""
    found = evidence.state.analysis
    if found is None:
        unfinished = (Paragraph("The analysis has not been finished."),)
        return Section("analysis", "Analysis of the problem", unfinished)
    author = evidence.author(evidence.run.config.models.analyst)
    branch = Paragraph(
        f"Branch taken: {found.strategy} ({BRANCH[found.strategy]}). The checks were made by {author}."
    )
    table = Table(("check", "verdict"), tuple((step.name, _verdict(step.verdict)) for step in found.steps))
    answers = tuple(
        Details(f"{step.name}: whole answer", (ModelText(step.text, author),)) for step in found.steps
    )
    blocks = (branch, *_written(evidence, found.written), table, *_bounds(found.bounds), *answers)
    return Section("analysis", "Analysis of the problem", blocks)


def _written(evidence: ReportData, written: GeneratedPrompts | None) -> Iterator[Block]:
    if written is None:
        return
    author = evidence.author(evidence.run.config.models.writer)
    if written.unreadable:
        yield Paragraph(
            f"{author} was to write the prompts of the analysis and gave none that could be read. Our own were used. "
            f"{written.unreadable}"
        )
        return
    yield Paragraph(f"The prompts were written by {author}; only the form of the answer was added to them.")
    yield from (
        Details(f"{name}: prompt", (ModelText(text, author),)) for name, text in written.prompts.items()
    )


def _bounds(bounds: tuple[StabilityBound, ...]) -> Iterator[Block]:
    rows = tuple((bound.scheme, bound.expression, number_text(bound.value), bound.note) for bound in bounds)
    caption = "Bounds on the time step, with their values on the grid of the data"
    if rows:
        yield Table(("scheme", "bound", "value", "note"), rows, ("value",), caption)


def _verdict(verdict: Mapping[str, Any]) -> str:
    return "\n".join(
        f"{name}: {_inline(value)}" for name, value in verdict.items() if name != "bounds" and value
    )


def _inline(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_inline(item)}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_inline(item) for item in value)
    return one_line(str(value))
