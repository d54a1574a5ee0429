"""From a sweep file to its cells: every combination of the axes, without the excluded ones, with the included ones.

Each value of an axis says what it sets, and has a label, of which the names of cells are made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import groupby, product
from math import prod
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.experiments.sweeps.file import SweepFile
from sharp.runs import WHAT as CONFIGURATION
from sharp.runs import every_role, key_path, unknown_names, with_absolute_paths
from sharp.yaml_documents import Place, dotted, validate

Shown = str | int | float | bool | None
LABEL = re.compile(r"[a-z0-9][a-z0-9._+-]*")
MOST_CELLS = 10_000
_LONGEST_ID = 120
_MODEL, _ID = "model", "id"


@dataclass(frozen=True)
class Cell:
    """One run of a sweep. `id` names its directory; `values` has what a table shows for each axis."""

    id: str
    values: Mapping[str, Shown]
    config: RunConfig


@dataclass(frozen=True)
class AxisValue:
    """One value of an axis: its label, what tables show for it, the value as written, and what it sets.

    Settings are keys of a run's configuration, each with its value and where that is written.
    """

    label: str
    shown: Shown
    written: Any
    settings: tuple[tuple[Place, Any, str], ...] = ()

    def is_meant(self, value: Any) -> bool:
        """Whether a sweep file names this value, by its label or as it is written."""
        return value == self.label or (value == self.written and isinstance(value, type(self.written)))


Axes = Mapping[str, tuple[AxisValue, ...]]


@dataclass(frozen=True)
class _Draft:
    id: str
    points: Mapping[str, AxisValue]
    origin: str


def expand(sweep: SweepFile) -> tuple[Cell, ...]:
    """Return the cells, those of the matrix first, in the order of the file.

    A cell's id is made of the labels of its own values, so it stays when others come or go. Raises
    `ConfigurationError` with one line for each thing that is wrong.
    """
    reader = _Reader(sweep)
    axes = {name: reader.axis(name, values) for name, values in sweep.form.matrix.items()}
    reader.end()
    reader.check_apart(axes)
    if not axes and not sweep.form.include:
        raise ConfigurationError(sweep.complaint((), "expected a matrix, or runs to include; found neither"))
    drafts = _combinations(reader, axes)
    drafts += [reader.included(axes, index, entry) for index, entry in enumerate(sweep.form.include)]
    reader.end()
    _check_ids(drafts)
    return _checked(sweep, drafts)


class _Reader:
    """Reads keys and values of a sweep file, and collects what is wrong with them."""

    def __init__(self, sweep: SweepFile) -> None:
        self.sweep = sweep
        self.wrong: list[str] = []

    def end(self) -> None:
        """Raise what has been found wrong."""
        if self.wrong:
            raise ConfigurationError("\n".join(self.wrong))

    def fault(self, place: Place, text: str) -> None:
        self.wrong.append(self.sweep.complaint(place, text))

    def axis(self, name: str, values: Any) -> tuple[AxisValue, ...]:
        place: Place = ("matrix", name)
        points: tuple[AxisValue, ...] = ()
        if isinstance(values, list) and values:
            points = tuple(self.value(name, value, (*place, index)) for index, value in enumerate(values))
        elif isinstance(values, dict) and values:
            points = tuple(self.labelled(name, label, value) for label, value in values.items())
        else:
            self.fault(place, "expected a list of values, or a mapping of labels to values")
        seen: set[str] = set()
        for index, point in enumerate(points):
            if point.label in seen and point.label != "-":
                self.fault((*place, index), f"two values have the label {point.label!r}; label them yourself")
            seen.add(point.label)
        return points

    def value(self, key: str, value: Any, at: Place) -> AxisValue:
        """Return the value of a key with the label that it has by itself."""
        settings = self.settings(key, value, at)
        label = label_of(key, value)
        if settings and label is None:
            self.fault(at, f"give each value of {key} a label: {{LABEL: VALUE, …}}")
        label = (settings and label) or "-"
        plain = isinstance(value, Shown) and not (isinstance(value, str) and Path(value).is_absolute())
        return AxisValue(label, value if plain else label, value, settings)

    def labelled(self, name: str, label: str, value: Any) -> AxisValue:
        at: Place = ("matrix", name, label)
        if not LABEL.fullmatch(label):
            self.fault(at, "expected a label of small letters, digits and . _ + -")
        if name == _MODEL or is_key(name) or not isinstance(value, dict):
            return AxisValue(label, label, value, self.settings(name, value, at))
        if not value:
            self.fault(at, "expected keys of a run configuration with their values")
        parts = [self.settings(key, item, (*at, key)) for key, item in value.items()]
        return AxisValue(label, label, label, tuple(setting for part in parts for setting in part))

    def settings(self, key: str, value: Any, at: Place) -> tuple[tuple[Place, Any, str], ...]:
        """Return what a key with a value sets; `model` stands for every role."""
        pairs: Mapping[Place, Any] = {}
        if key == _MODEL:
            pairs = every_role(self.sweep.base, value)
        elif is_key(key):
            pairs = {key_path(key): value}
        elif is_section(key):
            self.fault(at, f"{key} is a section of a configuration; name its keys: {', '.join(keys_of(key))}")
        else:
            self.fault(at, f"{key!r} is not a key of a run configuration{_meant(key)}")
        origin = self.sweep.document.location_of(at)
        return tuple((place, setting, origin) for place, setting in pairs.items())

    def check_apart(self, axes: Axes) -> None:
        """Raise where two axes set the same key: which of them holds would be a matter of order."""
        owner: dict[Place, str] = {}
        for name, points in axes.items():
            for place in {place for point in points for place, *_ in point.settings}:
                if owner.setdefault(place, name) != name:
                    text = f"the axes {owner[place]} and {name} both set {dotted(place)}; make them one axis"
                    raise ConfigurationError(self.sweep.complaint(("matrix", name), text))

    def included(self, axes: Axes, index: int, entry: Mapping[str, Any]) -> _Draft:
        at = ("include", index)
        names = [*(name for name in axes if name in entry), *(n for n in entry if n not in {*axes, _ID})]
        points = {name: self._included(axes, name, entry[name], (*at, name)) for name in names}
        draft = _draft(points, self.sweep.document.location_of(at))
        if not names:
            self.fault(at, "expected keys of a run configuration or axes, with their values")
        given = entry.get(_ID, draft.id)
        if not isinstance(given, str) or not LABEL.fullmatch(given):
            self.fault((*at, _ID), f"expected small letters, digits and . _ + -, found {given!r}")
        return _Draft(str(given), points, draft.origin)

    def _included(self, axes: Axes, name: str, value: Any, at: Place) -> AxisValue:
        known = next((point for point in axes.get(name, ()) if point.is_meant(value)), None)
        if known is not None:
            return known
        if name in axes and name != _MODEL and not is_key(name):
            self.fault(at, f"{value!r} is no value of this axis; valid: {_labels(axes[name])}")
            return AxisValue("-", None, value)
        return self.value(name, value, at)


def _combinations(reader: _Reader, axes: Axes) -> list[_Draft]:
    sweep, size = reader.sweep, prod(map(len, axes.values()))
    if size > MOST_CELLS:
        text = f"expected at most {MOST_CELLS} combinations, found {size}"
        raise ConfigurationError(sweep.complaint(("matrix",), text))
    origin = sweep.document.location_of(("matrix",))
    drafts = [
        _draft(dict(zip(axes, points, strict=True)), origin) for points in product(*axes.values()) if points
    ]
    for index, entry in enumerate(sweep.form.exclude):
        for name, value in entry.items():
            at = ("exclude", index, name)
            if name not in axes:
                reader.fault(at, f"expected an axis of the matrix: {', '.join(axes)}")
            elif not any(point.is_meant(value) for point in axes[name]):
                reader.fault(at, f"{value!r} is no value of this axis; valid: {_labels(axes[name])}")
        if not entry:
            reader.fault(("exclude", index), "expected values of axes, found none")
        reader.end()
        drafts = [
            d for d in drafts if not all(d.points[name].is_meant(value) for name, value in entry.items())
        ]
    return drafts


def _draft(points: Mapping[str, AxisValue], origin: str) -> _Draft:
    return _Draft("-".join(point.label for point in points.values()), points, origin)


def _labels(points: Iterable[AxisValue]) -> str:
    return ", ".join(point.label for point in points)


def _check_ids(drafts: Iterable[_Draft]) -> None:
    seen: dict[str, _Draft] = {}
    for draft in drafts:
        if len(draft.id) > _LONGEST_ID:
            raise ConfigurationError(
                f"{draft.origin}: the name {draft.id!r} is longer than {_LONGEST_ID} characters; give values short "
                "labels: {LABEL: VALUE, …}"
            )
        if draft.id in seen:
            raise ConfigurationError(
                f"{draft.origin}: two cells would be called {draft.id!r}; label their values, or give the included one "
                f"an id (the other stands in {seen[draft.id].origin})"
            )
        seen[draft.id] = draft


def _checked(sweep: SweepFile, drafts: Iterable[_Draft]) -> tuple[Cell, ...]:
    cells, wrong = [], dict[str, None]()
    looked_up: dict[str, list[tuple[Place, str]]] = {}  # each combination of names once
    for draft in drafts:
        document = sweep.base
        for point in draft.points.values():
            for place, value, origin in point.settings:
                document = document.with_value(place, value, origin)
        try:
            config = validate(document, RunConfig, ConfigurationError, CONFIGURATION)
        except ConfigurationError as error:
            wrong |= dict.fromkeys(str(error).splitlines())
            continue
        runs = (config.genesis.replay_from, config.genesis.prior_run)
        key = repr((config.problem, config.models, config.feedback.metrics, runs))
        if key not in looked_up:
            looked_up[key] = list(unknown_names(config))
        wrong |= dict.fromkeys(document.error_at(place, text) for place, text in looked_up[key])
        values = {name: point.shown for name, point in draft.points.items()}
        cells.append(Cell(draft.id, values, with_absolute_paths(config)))
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return tuple(cells)


def label_of(key: str, value: Any) -> str | None:
    """Return the label of a value: `burgers`, `s0`, `3xrule-based`, `max-rounds4`, `no-stability`; mappings: None."""
    leaf = _slug(key.rpartition(".")[2])
    match value:
        case None:
            return f"{leaf}-unset"
        case bool():
            return leaf if value else f"no-{leaf}"
        case int() | float():
            return f"s{value}" if key == "seed" else f"{leaf}{_slug(str(value))}"
        case str():
            return _slug(Path(value).stem if value.endswith((".yaml", ".yml")) else Path(value).name) or None
        case [str(), *_] if all(isinstance(item, str) for item in value):
            return _label_of_list(key, value)
        case _:
            return None


def _label_of_list(key: str, values: list[str]) -> str | None:
    labels: list[str] = []
    for value, same in groupby(values):
        label, count = label_of(key, value), len(list(same))
        if label is None:
            return None
        labels.append(label if count == 1 else f"{count}x{label}")
    return "+".join(labels)


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9.+]+", "-", text.lower()).strip("-.+")


def is_key(key: str) -> bool:
    """Whether a dotted name is that of a single setting of a run's configuration, or within a mapping of settings."""
    parts = list(map(str, key_path(key)))
    names = keys_of()
    return any(".".join(parts[:count]) in names for count in range(1, len(parts) + 1))


def is_section(key: str) -> bool:
    """Whether a dotted name is that of a section of a run's configuration."""
    return any(name.startswith(f"{key}.") for name in keys_of()) and not is_key(key)


def keys_of(section: str = "") -> list[str]:
    """Return the names of all settings, or of those below a section."""
    return [name for name in _keys(RunConfig, "") if name.startswith(f"{section}." if section else "")]


def _meant(key: str) -> str:
    """Return the end of a sentence about an unknown name: which may have been meant, and where all are listed."""
    names, leaf = keys_of(), key.rpartition(".")[2]
    close = get_close_matches(key, names, n=1) or [n for n in names if n.rpartition(".")[2] == leaf]
    guess = f"; did you mean {close[0]!r}?" if close else "."
    return f"{guess} docs/reference/configuration.md lists them; an axis of several keys is a mapping of labels to keys"


@cache
def _keys(model: type[BaseModel], before: str) -> tuple[str, ...]:
    names: list[str] = []
    for name, field in model.model_fields.items():
        kind: Any = field.annotation
        section = isinstance(kind, type) and issubclass(kind, BaseModel)
        names += _keys(kind, f"{before}{name}.") if section else [f"{before}{name}"]
    return tuple(names)
