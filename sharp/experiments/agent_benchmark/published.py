"""Tables 1 and 2 of PDE-Agent (arXiv 2512.16214): cases solved by category, `data/published/pde-agent.yaml`."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sharp.errors import DataError
from sharp.resources import find_resource
from sharp.yaml_documents import read_document, validate

_FILE = "published/pde-agent.yaml"
_WHAT = "a table of solved cases"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class PublishedSolved(_Part):
    """How many cases of each category a method solved; `policy` is ours that stands for it."""

    table: str = Field(min_length=1)
    method: str = Field(min_length=1)
    policy: str = Field(min_length=1)
    solved: tuple[int, ...]


class PublishedTables(_Part):
    """The categories, how many cases each had, and what was solved of them."""

    name: str
    categories: tuple[str, ...]
    cases: tuple[int, ...]
    rows: tuple[PublishedSolved, ...]

    @model_validator(mode="after")
    def _has_a_number_for_every_category(self) -> PublishedTables:
        for name, numbers in (("cases", self.cases), *((row.method, row.solved) for row in self.rows)):
            if len(numbers) != len(self.categories):
                raise ValueError(f"{name}: expected {len(self.categories)} numbers, found {len(numbers)}")
            if any(not 0 <= one <= most for one, most in zip(numbers, self.cases, strict=True)):
                raise ValueError(f"{name}: expected from 0 to the number of cases in every category")
        return self


def published_tables() -> PublishedTables:
    """Return what was published; raises `DataError`, which names file, line and key."""
    path = find_resource("data", _FILE)
    if path is None:
        raise DataError(f"data/{_FILE}: expected {_WHAT}, found nothing of that name")
    return validate(read_document(path, DataError, _WHAT), PublishedTables, DataError, _WHAT)
