"""The report as one HTML page that needs nothing else: no scripts, no files, no network."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from sharp.report.blocks import Report, Table
from sharp.report.drawings import Curves, Drawing, ErrorChart, Flow, Lineage, Lines
from sharp.report.error_chart import draw_errors
from sharp.report.field_charts import draw_curves, draw_maps
from sharp.report.flow_chart import draw_flow
from sharp.report.line_chart import draw_lines
from sharp.report.lineage_chart import draw_lineage
from sharp.report.panel_figure import draw_panels
from sharp.report.panels import Panels
from sharp.report.text import MISSING, clean, clip

MAX_BYTES = 2_000_000
# Characters of one text that are shown: the first choice that keeps the page small enough.
LIMITS = (40_000, 10_000, 2_000, 400, 100)
LONGEST_WORD = 16


def render_html(report: Report) -> str:
    """Return the page, with long texts cut as far as its size requires."""
    page = ""
    for limit in LIMITS:
        page = _environment(limit).get_template("report.html.j2").render(report=report)
        if len(page.encode()) <= MAX_BYTES:
            break
    return page


@cache
def _environment(limit: int) -> Environment:
    """Return an environment in which whatever is put out is cleaned, cut and escaped, in this order and once."""

    def shown(text: str) -> str:
        return clip(clean(text), limit)

    def finalize(value: Any) -> Any:
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
    environment.filters["draw"] = draw
    environment.filters["diff_lines"] = lambda text: diff_lines(shown(text))
    environment.filters["column_classes"] = column_classes
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


def draw(drawing: Drawing, description: str) -> Markup:
    """Return a drawing as SVG, described in words."""
    match drawing:
        case ErrorChart():
            return draw_errors(drawing, description)
        case Lineage():
            return draw_lineage(drawing, description)
        case Curves():
            return draw_curves(drawing, description)
        case Lines():
            return draw_lines(drawing, description)
        case Flow():
            return draw_flow(drawing, description)
        case Panels():
            return draw_panels(drawing, description)
        case _:
            return draw_maps(drawing, description)


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
