"""The tables of neural solvers that the paper quotes (arXiv 2511.00183, appendix A.2), as printed."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sharp.errors import DataError
from sharp.resources import find_resource
from sharp.yaml_documents import read_document, validate

_FILE = "published/neural-tables.yaml"
_WHAT = "the paper's tables of neural solvers"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PaperTable(_Section):
    """A table as printed: text by row and column; cells that the text of the paper has lost are empty."""

    table: str = Field(pattern=r"^Table \d+$")
    title: str = Field(min_length=1)
    columns: tuple[str, ...] = Field(min_length=2)
    rows: tuple[tuple[str, ...], ...] = Field(min_length=1)
    note: str = Field(min_length=1)

    @model_validator(mode="after")
    def _has_a_cell_for_every_column(self) -> PaperTable:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row {row[0]!r}: expected {len(self.columns)} cells, found {len(row)}")
        return self


class _Tables(_Section):
    name: str
    tables: tuple[PaperTable, ...]


def paper_tables() -> tuple[PaperTable, ...]:
    """Return the tables in their order; raises `DataError` for a wrong file, with file, line and key."""
    path = find_resource("data", _FILE)
    if path is None:
        raise DataError(f"data/{_FILE}: expected {_WHAT}, found nothing of that name")
    return validate(read_document(path, DataError, _WHAT), _Tables, DataError, _WHAT).tables
