"""A sweep file: which runs differ from a base in what. Read strictly; every complaint names file and line.

name: feedback
base: burgers                       # as for `sharp run`: a problem, a configuration file, or its keys right here
matrix:
  problem: [burgers, advection]     # any key of a configuration, with its values
  models:                           # several keys that move together, each combination with a label
    small: {models.generator: qwen3-coder-30b, models.analyst: qwen3-32b}
    large: {model: gpt-oss-120b}    # `model` stands for every role
  seed: [0, 1, 2]
exclude: [{problem: advection, seed: 2}]
include: [{problem: darcy, models: small}]
limits: {runs: 8, evaluations: 2}
budget: {dollars: 50}
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from sharp.config import BudgetOptions
from sharp.errors import ConfigurationError
from sharp.runs import FILES, changed, every_role, is_file_key, read_configuration, with_files
from sharp.yaml_documents import Document, Place, dotted, read_document, validate

WHAT = "a sweep"
NAME = r"^[a-z0-9][a-z0-9._-]*$"
_TEXT = "tag:yaml.org,2002:str"
_FILE_KEYS = {dotted(place): place for place in FILES}


class SweepLimits(BaseModel):
    """What goes on at the same time: runs under way, and evaluations on this machine (None: as in the base)."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    runs: int = Field(8, ge=1)
    evaluations: int | None = Field(None, ge=1)


class SweepModel(BaseModel):
    """What a sweep file holds; `base` and the values of `matrix` are looked at later. `budget` is for all runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str = Field(pattern=NAME)
    description: str = ""
    base: str | dict[str, Any]
    matrix: dict[str, Any] = Field(default_factory=dict)
    include: tuple[dict[str, Any], ...] = ()
    exclude: tuple[dict[str, Any], ...] = ()
    limits: SweepLimits = SweepLimits()
    budget: BudgetOptions = BudgetOptions()


@dataclass(frozen=True)
class SweepFile:
    """A sweep file that was read: its form, where each part stands, and the base as a document of its own."""

    form: SweepModel
    document: Document
    base: Document

    def complaint(self, place: Place, text: str) -> str:
        """Return `file:line: path: text`."""
        return self.document.error_at(place, text)

    def frozen(self) -> bytes:
        """Return a sweep file with the same content that can be read from anywhere."""
        content = {**self.form.model_dump(mode="json"), "base": self.base.data}
        options: dict[str, Any] = {"sort_keys": False, "allow_unicode": True, "default_flow_style": None}
        text: str = yaml.dump(content, Dumper=_Plain, width=110, **options)
        return text.encode()


def read_sweep(
    path: Path, overrides: Iterable[str] = (), *, model: str | None = None, base_url: str | None = None
) -> SweepFile:
    """Read a sweep file; the options change its base as they change a run's configuration.

    Names of existing files are relative to the sweep file, and absolute afterwards. Raises `ConfigurationError`, which
    names file, line and key, or the option.
    """
    document = read_document(path, ConfigurationError, WHAT)
    folder = path.absolute().parent
    document = _with_files(document, folder)
    form = validate(_of_one_kind(document), SweepModel, ConfigurationError, WHAT)
    base = _with_model(_base(form, document, folder))
    base = changed(base, overrides, model=model, base_url=base_url)
    return SweepFile(form, document, base)


def sweep_of(content: dict[str, Any], overrides: Iterable[str] = ()) -> SweepFile:
    """Return a sweep of what a command says, as a file of the same content would be read.

    `overrides` change its base. Raises `ConfigurationError`.
    """
    document = Document(content, {(): "command line"})
    form = validate(document, SweepModel, ConfigurationError, WHAT)
    base = Document(content["base"], {(): "command line"})
    return SweepFile(form, document, changed(base, overrides, model=None, base_url=None))


def _of_one_kind(document: Document) -> Document:
    """Return the document; raises where `base` is neither of its two kinds, which pydantic would say in two lines."""
    base = document.data.get("base", "")
    if not isinstance(base, str | dict):
        text = f"expected a problem, the name of a configuration file, or the keys of a configuration, found {base!r}"
        raise ConfigurationError(document.error_at(("base",), text))
    return document


def _base(form: SweepModel, document: Document, folder: Path) -> Document:
    if isinstance(form.base, str):
        named = form.base.endswith((".yaml", ".yml"))
        base = read_configuration(str(folder / form.base) if named else form.base)
        where = document.location_of(("base",))
        return base if named else Document(base.data, {(): where})
    places = {place[1:]: where for place, where in document.places.items() if place[:1] == ("base",)}
    return with_files(Document(form.base, places), folder)


def _with_model(base: Document) -> Document:
    """Return a base in which `model` stands for every role, as in a matrix."""
    model = base.data.get("model")
    if not isinstance(model, str):
        return base
    where = base.location_of(("model",))
    base = Document({key: value for key, value in base.data.items() if key != "model"}, base.places)
    for place, value in every_role(base, model).items():
        base = base.with_value(place, value, where)
    return base


def _with_files(document: Document, folder: Path) -> Document:
    """Make names of existing files absolute wherever a value of a key that names files stands, except in the base."""
    for place, value in list(_texts(document.data, ())):
        key = next((_FILE_KEYS[part] for part in place if part in _FILE_KEYS), None)
        if key is not None and place[0] != "base" and is_file_key(key, folder / value):
            document = _replaced(document, place, str(folder / value))
    return document


def _texts(value: Any, place: Place) -> Iterator[tuple[Place, str]]:
    if isinstance(value, str):
        yield place, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _texts(item, (*place, name))


def _replaced(document: Document, place: Place, value: Any) -> Document:
    """Return the document with another value at a place that may lie in lists; its lines stay."""

    def within(data: Any, rest: Place) -> Any:
        if not rest:
            return value
        if isinstance(data, list):
            return [within(item, rest[1:]) if index == rest[0] else item for index, item in enumerate(data)]
        return {name: within(item, rest[1:]) if name == rest[0] else item for name, item in data.items()}

    return Document(within(document.data, place), document.places)


class _Plain(yaml.SafeDumper):
    """Writes what the strict reader reads again: no aliases, and every text between quotes."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True


_Plain.add_representer(str, lambda dumper, text: dumper.represent_scalar(_TEXT, text, style='"'))
