"""The HTML writer: one page that needs nothing else, neither scripts nor files nor a network."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sharp.document.blocks import Block, Columns, Details, Figure, Report, Section, Table
from sharp.document.svg import inline_svg
from sharp.document.text import MISSING, clean, clip

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from jinja2 import Environment
    from markupsafe import Markup

MAX_BYTES = 2_000_000
# Characters of one text that are shown: the first choice that keeps the page small enough.
LIMITS = (40_000, 10_000, 2_000, 400, 100)
LONGEST_WORD = 16


def render_html(report: Report) -> str:
    """Return the page, with long texts cut as far as its size requires."""
    parts = (report.glance, *(section.blocks for section in report.sections))
    figures = [figure for blocks in parts for figure in _figures(blocks)]
    charts = {id(figure): inline_svg(figure.chart, figure.instead) for figure in figures}
    page = ""
    for limit in LIMITS:
        page = (
            _environment(limit).get_template("document.html.j2").render(report=report, charts=charts, id=id)
        )
        if len(page.encode()) <= MAX_BYTES:
            break
    return page


def render_part(section: Section, prefix: str) -> str:
    """Return one section as HTML for a page that holds parts of several documents; `prefix` keeps their names apart."""
    placed = replace(section, anchor=f"{prefix}{section.anchor}")
    charts = {
        id(figure): inline_svg(replace(figure.chart, anchor=f"{prefix}{figure.chart.anchor}"), figure.instead)
        for figure in _figures(section.blocks)
    }
    template = _environment(LIMITS[1]).get_template("part.html.j2")
    return template.render(section=placed, charts=charts, id=id)


def style_sheet() -> str:
    """Return the style sheet of every page."""
    return (Path(__file__).parent / "document.css").read_text(encoding="utf-8")


def _figures(blocks: Sequence[Block]) -> Iterator[Figure]:
    for block in blocks:
        if isinstance(block, Figure):
            yield block
        elif isinstance(block, Details | Columns):
            yield from _figures(block.blocks)


@cache
def _environment(limit: int) -> Environment:
    """Return an environment in which whatever is put out is cleaned, cut and escaped, in this order and once."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def shown(text: str) -> str:
        return clip(clean(text), limit)

    def finalize(value: Any) -> str | Markup:
        return value if isinstance(value, Markup) else shown(str(value))

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["missing"] = MISSING
    environment.filters["diff_lines"] = lambda text: diff_lines(shown(text))
    environment.filters["column_classes"] = column_classes
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


def column_classes(table: Table) -> list[str]:
    """Return for each column of a table whether it holds numbers, longer texts, or words that stay whole."""
    return [_column_class(table, position, name) for position, name in enumerate(table.columns)]


def _column_class(table: Table, position: int, name: str) -> str:
    if name in table.numbers:
        return "number"
    return "text" if any(len(row[position]) > LONGEST_WORD for row in table.rows) else "word"


def diff_lines(text: str) -> list[tuple[str, str]]:
    """Return each line of a diff with its class: `file`, `place`, `added`, `removed` or `same`."""
    lines = text.rstrip("\n").split("\n")
    return [(_line_class(line, number), line) for number, line in enumerate(lines)]


def _line_class(line: str, number: int) -> str:
    if number < 2:
        return "file"
    return {"+": "added", "-": "removed", "@": "place"}.get(line[:1], "same")
