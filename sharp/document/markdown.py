"""The Markdown writer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sharp.document.blocks import Report, Table
from sharp.document.text import clean, one_line

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

# What has a meaning within a line of Markdown; an underscore or a tilde only at the edge of a word.
_SPECIAL = re.compile(r"[\\`*\[\]<>|&$]|(?<![^\W_])_|_(?![^\W_])|~~")
_AT_START = re.compile(r"^(#|[-+=](?=\s|$|-|=)|\d+(?=[.)](\s|$))|~~~)")
_TICKS = re.compile("`+")


def render_markdown(report: Report) -> str:
    """Return the report as Markdown."""
    return str(
        markdown_environment(Path(__file__).parent).get_template("document.md.j2").render(report=report)
    )


@cache
def markdown_environment(folder: Path) -> Environment:
    """Return an environment for the templates of a folder: what is put out is escaped once, onto one line."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    def finalize(value: Any) -> Markup:
        # The markup class only tells what has been escaped; the escaping is Markdown's.
        return value if isinstance(value, Markup) else Markup(inline(str(value)))  # noqa: S704

    made = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters["fence"] = lambda text, language="text": Markup(fence(text, language))  # noqa: S704
    made.filters["table"] = lambda block: Markup(markdown_table(block))  # noqa: S704
    made.filters["kind"] = lambda block: type(block).__name__
    return made


def inline(text: str) -> str:
    """Return a text on one line in which nothing has a meaning in Markdown or HTML, neither inside nor at its start."""
    flat = one_line(clean(text))
    escaped = _SPECIAL.sub(lambda match: "".join(f"\\{sign}" for sign in match[0]), flat)
    return _AT_START.sub(_escaped_start, escaped)


def fence(text: str, language: str = "text") -> str:
    """Return a text as a code block that no run of backticks in it can close."""
    body = clean(text).rstrip("\n")
    longest = max((len(run) for run in _TICKS.findall(body)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{body}\n{ticks}"


def markdown_table(block: Table) -> str:
    """Return a table, numbers to the right, padded so that it can be read as it stands."""
    rows = [[inline(cell) for cell in row] for row in (block.columns, *block.rows)]
    right = [name in block.numbers for name in block.columns]
    widths = [max(3, *(len(row[column]) for row in rows)) for column in range(len(right))]
    # Padding to the width of one long sentence would only spread the others apart.
    widths = [min(width, 28) for width in widths]
    rule = [
        "-" * (width - 1) + (":" if to_right else "-") for width, to_right in zip(widths, right, strict=True)
    ]
    lines = [_row(row, widths, right) for row in rows]
    return "\n".join([lines[0], _row(rule, widths, right), *lines[1:]])


def _row(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = (
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    )
    return f"| {' | '.join(padded)} |"


def _escaped_start(match: re.Match[str]) -> str:
    start = match[0]
    # A number that would begin a list is escaped at the mark that follows it.
    return f"{start}\\" if start[0].isdigit() else f"\\{start}"
