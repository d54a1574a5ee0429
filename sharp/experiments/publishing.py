"""Writing an experiment down: page as HTML and Markdown, tables as LaTeX, rows as CSV and Parquet, figures as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hpc.files import make_directory, write_atomic
from sharp.document import Figure, Report

if TYPE_CHECKING:
    from pandas import DataFrame


NO_PARQUET = (
    "{name}.parquet is not written, for pyarrow is not installed: pip install 'pde-sharp[tables]'. "
    "{name}.csv has the same."
)


@dataclass(frozen=True)
class ExperimentFiles:
    """Where page and rows of an experiment are; `parquet` is None if pyarrow is not installed."""

    html: Path
    markdown: Path
    latex: Path
    csv: Path
    parquet: Path | None
    figures: tuple[Path, ...] = ()

    def paths(self) -> tuple[Path, ...]:
        """Return all files that were written."""
        named = (self.html, self.markdown, self.latex, self.csv, self.parquet, *self.figures)
        return tuple(path for path in named if path is not None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, a missing file as None."""
        files = {name: path and str(path) for name, path in vars(self).items() if name != "figures"}
        return {**files, "figures": [str(path) for path in self.figures]}


def existing_files(folder: Path, page: str, table: str, sources: Iterable[Path]) -> ExperimentFiles | None:
    """Return what `publish` wrote, None if any of it is missing or older than one of its sources."""
    files = _files(folder, page, table)
    if files.parquet is not None and not files.parquet.exists():
        files = replace(files, parquet=None)
    try:
        newest = max(source.stat().st_mtime_ns for source in sources)
        return files if all(path.stat().st_mtime_ns >= newest for path in files.paths()) else None
    except FileNotFoundError:
        return None


def publish(
    folder: Path,
    page: str,
    report: Report,
    table: str,
    rows: DataFrame,
    figures: Mapping[str, Figure | None] = {},
) -> ExperimentFiles:
    """Write page.html, page.md, page.tex, table.csv, table.parquet, and each figure by its name.

    Each file is replaced as a whole. A figure without a drawing removes an older file, which would be wrong now.
    """
    # Here, for these load pandas and jinja2: `existing_files` does without.
    from sharp.document import render_html, render_latex, render_markdown, svg_file
    from sharp.experiments.frame import write_csv, write_parquet

    make_directory(folder)
    files = _files(folder, page, table)
    assert files.parquet is not None
    write_csv(files.csv, rows)
    has_parquet = write_parquet(files.parquet, rows)
    drawn = {folder / f"{name}.svg": figure for name, figure in figures.items()}
    for path, figure in drawn.items():
        if figure is None:
            path.unlink(missing_ok=True)
        else:
            write_atomic(path, svg_file(figure.chart, figure.instead))
    write_atomic(files.html, render_html(report).encode())
    write_atomic(files.markdown, render_markdown(report).encode())
    write_atomic(files.latex, render_latex(report).encode())
    kept = tuple(path for path, figure in drawn.items() if figure is not None)
    return replace(files, parquet=files.parquet if has_parquet else None, figures=kept)


def _files(folder: Path, page: str, table: str) -> ExperimentFiles:
    html, markdown, latex = (folder / f"{page}.{ending}" for ending in ("html", "md", "tex"))
    return ExperimentFiles(html, markdown, latex, folder / f"{table}.csv", folder / f"{table}.parquet")
