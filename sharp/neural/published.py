"""Published errors of neural solvers: a cited table, with what each number means, and never a ranking.

    published_rows("burgers") -> tuple[PublishedRow, ...]     the rows of one problem, by name
    load_published() -> tuple[PublishedRow, ...]              all rows, by problem and name

The table is `data/published/neural.yaml`; a file of that name in `$SHARP_RESOURCES/data/published` comes before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from sharp.errors import DataError
from sharp.problems import list_problems
from sharp.resources import find_resource
from sharp.yaml_documents import Document, hint, read_document, validate

TABLE = "published/neural.yaml"
WHAT = "a table of published errors"
Comparable = Literal["yes", "partly", "no", "unknown"]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Citation(_Section):
    """Who published a number, and where it was read for this table."""

    cite: str = Field(min_length=1)
    read_in: str = Field(min_length=1)


class PublishedRowModel(_Section):
    """One number, with the keys of its source, metric and setting."""

    method: str = Field(min_length=1)
    problem: str
    value: float = Field(gt=0)
    case: str = Field(min_length=1)
    source: str
    table: str = Field(min_length=1)
    metric: str
    setting: str
    comparable: Comparable
    note: str = Field(min_length=1)


class PublishedTable(_Section):
    """What the file holds."""

    name: str
    unit: str = Field(min_length=1)
    sources: dict[str, Citation]
    metrics: dict[str, str]
    settings: dict[str, str]
    rows: tuple[PublishedRowModel, ...]


@dataclass(frozen=True)
class PublishedRow:
    """One published error, with all that is known about what it means.

    `case` names the parameters as published, `metric` how the number was formed, `setting` how the network was
    trained, `source` the citation with its table, `read_in` where the number was read. `comparable` says whether it can
    stand beside a score of this project for `problem`, and `note` why.
    """

    method: str
    problem: str
    value: float
    unit: str
    case: str
    metric: str
    setting: str
    source: str
    read_in: str
    comparable: Comparable
    note: str


def published_rows(problem: str) -> tuple[PublishedRow, ...]:
    """Return what is published about a problem (its id), sorted by the methods' names."""
    return tuple(row for row in load_published() if row.problem == problem)


def load_published() -> tuple[PublishedRow, ...]:
    """Return all rows, sorted by problem and then by the methods' names; raises `DataError` for a wrong file."""
    path = find_resource("data", TABLE)
    if path is None:
        raise DataError(f"data/{TABLE}: expected {WHAT}, found nothing of that name")
    return read_published(path)


@cache
def read_published(path: Path) -> tuple[PublishedRow, ...]:
    """Read a table; raises `DataError`, which names file, line and key."""
    document = read_document(path, DataError, WHAT)
    form = validate(document, PublishedTable, DataError, WHAT)
    complaints = list(_complaints(form, document))
    if complaints:
        raise DataError("\n".join(complaints))
    rows = (_row(form, entry) for entry in form.rows)
    return tuple(sorted(rows, key=lambda row: (row.problem, row.method, row.source, row.case)))


def _row(form: PublishedTable, entry: PublishedRowModel) -> PublishedRow:
    source = form.sources[entry.source]
    cited = {"source": f"{source.cite}, {entry.table}", "read_in": source.read_in, "unit": form.unit}
    meaning = {"metric": form.metrics[entry.metric], "setting": form.settings[entry.setting]}
    return PublishedRow(**entry.model_dump(exclude={"table"}) | cited | meaning)


def _complaints(form: PublishedTable, document: Document) -> Iterator[str]:
    """Say which rows refer to what is not there, and which definitions no row refers to."""
    known: Mapping[str, Mapping[str, object]] = {
        "problem": list_problems(),
        "source": form.sources,
        "metric": form.metrics,
        "setting": form.settings,
    }
    for number, entry in enumerate(form.rows):
        for key, valid in known.items():
            if (name := getattr(entry, key)) not in valid:
                yield document.error_at(
                    ("rows", number, key), f"there is no {key} {name!r}{hint(name, valid)}"
                )
    for key in ("source", "metric", "setting"):
        used = {getattr(entry, key) for entry in form.rows}
        for name in known[key]:
            if name not in used:
                yield document.error_at((f"{key}s", name), "no row refers to it")
