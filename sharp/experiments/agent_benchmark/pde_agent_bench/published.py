"""Published pass rates on PDEAgent-Bench: a cited table, `data/published/pde-agent-bench.yaml`."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, Field

from sharp.error_messages import valid_values
from sharp.errors import DataError
from sharp.resources import find_resource
from sharp.yaml_documents import read_document, validate

TABLE = "published/pde-agent-bench.yaml"
_WHAT = "a table of published pass rates"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _Citation(_Part):
    cite: str = Field(min_length=1)


class _Row(_Part):
    method: str = Field(min_length=1)
    value: float = Field(ge=0, le=1)
    source: str


class _Table(_Part):
    name: str
    unit: str
    sources: dict[str, _Citation]
    rows: tuple[_Row, ...]


@dataclass(frozen=True)
class PassRate:
    """The share of all cases that a method passes, and who says so."""

    method: str
    share: float
    source: str


def published_rates() -> tuple[PassRate, ...]:
    """Return the published pass rates, highest first; raises `DataError`, which names file, line and key."""
    path = find_resource("data", TABLE)
    if path is None:
        raise DataError(f"data/{TABLE}: expected {_WHAT}, found nothing of that name")
    document = read_document(path, DataError, _WHAT)
    form = validate(document, _Table, DataError, _WHAT)
    for number, row in enumerate(form.rows):
        if row.source not in form.sources:
            unknown = f"unknown source '{row.source}'; {valid_values('sources', row.source, form.sources)}"
            raise DataError(str(document.error_at(("rows", number, "source"), unknown)))
    rates = (PassRate(row.method, row.value, form.sources[row.source].cite) for row in form.rows)
    return tuple(sorted(rates, key=lambda rate: -rate.share))
