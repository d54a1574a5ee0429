"""The files of a comparison."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hpc.files import make_directory, write_atomic
from sharp.comparison.entry import Entry
from sharp.comparison.figure import cost_figure
from sharp.comparison.page import compose
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown
from sharp.report.panel_figure import svg_file
from sharp.report.panels import Panels


@dataclass(frozen=True)
class ComparisonFiles:
    """Where the comparison is; `svg` None where no run has an error to draw."""

    html: Path
    markdown: Path
    csv: Path
    svg: Path | None


def publish(entries: Sequence[Entry], folder: Path) -> ComparisonFiles:
    """Write the comparison as a page, as Markdown, as a table and its figure; raises what writing raises."""
    make_directory(folder)
    report = compose(entries)
    html, markdown, table = folder / "compare.html", folder / "compare.md", folder / "compare.csv"
    write_atomic(html, render_html(report).encode())
    write_atomic(markdown, render_markdown(report).encode())
    write_atomic(table, _csv(entries).encode())
    return ComparisonFiles(html, markdown, table, _draw(entries, folder / "cost.svg"))


def _draw(entries: Sequence[Entry], path: Path) -> Path | None:
    """Draw the figure; without one remove an older, which would be wrong now."""
    figure = cost_figure(entries)
    if figure is None:
        path.unlink(missing_ok=True)
        return None
    assert isinstance(figure.drawing, Panels)
    write_atomic(path, svg_file(figure.drawing, figure.instead))
    return path


def _csv(entries: Sequence[Entry]) -> str:
    """Return a line for each run; mappings and sequences are written as Python has them, what is missing is empty."""
    rows = [_flat(entry) for entry in entries]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _flat(entry: Entry) -> dict[str, object]:
    plain = entry.to_json()
    tokens = {f"whole_{name}_tokens": count for name, count in plain.pop("tokens").items()}
    simple = {name: value for name, value in plain.items() if not isinstance(value, dict | list)}
    models = {"models": " ".join(entry.models), "devices": "; ".join(entry.devices)}
    return {**simple, **tokens, **models, "failures": sum(entry.row.failures.values())}
