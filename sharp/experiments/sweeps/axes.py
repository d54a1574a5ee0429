"""The axes of a sweep: what each value sets, and the label that it has in the names of cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel

from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.experiments.sweeps.file import SweepFile
from sharp.runs.configure import every_role, key_path
from sharp.yaml_documents import Place, dotted

Shown = str | int | float | bool | None
LABEL = re.compile(r"[a-z0-9][a-z0-9._+-]*")
MODEL = "model"


@dataclass(frozen=True)
class Setting:
    """One key of a run's configuration with its value, and where that is written."""

    place: Place
    value: Any
    origin: str


@dataclass(frozen=True)
class AxisValue:
    """One value of an axis: its label, what tables show for it, the value as written, and what it sets."""

    label: str
    shown: Shown
    written: Any
    settings: tuple[Setting, ...]


@dataclass(frozen=True)
class SweepAxis:
    """What is varied, under the name that it has in the file and in tables."""

    name: str
    points: tuple[AxisValue, ...]


def read_axes(sweep: SweepFile) -> tuple[SweepAxis, ...]:
    """Return the axes of the matrix; raises `ConfigurationError` with one line for each thing that is wrong."""
    reader = Reader(sweep)
    axes = tuple(_axis(reader, name, values) for name, values in sweep.form.matrix.items())
    reader.end()
    _check_apart(sweep, axes)
    return axes


class Reader:
    """Reads keys and values of a sweep file, and collects what is wrong with them."""

    def __init__(self, sweep: SweepFile) -> None:
        self.sweep = sweep
        self.wrong: list[str] = []

    def end(self) -> None:
        """Raise what has been found wrong."""
        if self.wrong:
            raise ConfigurationError("\n".join(self.wrong))

    def fault(self, place: Place, text: str) -> None:
        """Note what is wrong with the file at a place."""
        self.wrong.append(self.sweep.complaint(place, text))

    def settings(self, key: str, value: Any, at: Place) -> tuple[Setting, ...]:
        """Return what a key with a value sets; `model` stands for every role."""
        origin = self.sweep.document.location_of(at)
        if key == MODEL:
            pairs = every_role(self.sweep.base, value)
        else:
            pairs = {key_path(key): value} if self._is_key(key, at) else {}
        return tuple(Setting(place, setting, origin) for place, setting in pairs.items())

    def label(self, key: str, value: Any, at: Place) -> str:
        """Return the label that a value of a key has by itself."""
        label = label_of(key, value)
        if label is None:
            self.fault(at, f"give each value of {key} a label: {{LABEL: VALUE, …}}")
        return label or "-"

    def _is_key(self, key: str, at: Place) -> bool:
        if is_key(key):
            return True
        if is_section(key):
            self.fault(at, f"{key} is a section of a configuration; name its keys: {', '.join(keys_of(key))}")
        else:
            self.fault(at, f"{key!r} is not a key of a run configuration{_meant(key)}")
        return False


def _axis(reader: Reader, name: str, values: Any) -> SweepAxis:
    place: Place = ("matrix", name)
    if isinstance(values, list) and values:
        points = [_point(reader, name, value, (*place, index)) for index, value in enumerate(values)]
    elif isinstance(values, dict) and values:
        points = [_labelled(reader, name, label, value) for label, value in values.items()]
    else:
        reader.fault(place, "expected a list of values, or a mapping of labels to values")
        points = []
    _check_labels(reader, place, points)
    return SweepAxis(name, tuple(points))


def _point(reader: Reader, key: str, value: Any, at: Place) -> AxisValue:
    settings = reader.settings(key, value, at)
    label = reader.label(key, value, at) if settings else "-"
    plain = isinstance(value, Shown) and not (isinstance(value, str) and Path(value).is_absolute())
    return AxisValue(label, value if plain else label, value, settings)


def _labelled(reader: Reader, name: str, label: str, value: Any) -> AxisValue:
    at: Place = ("matrix", name, label)
    if not LABEL.fullmatch(label):
        reader.fault(at, "expected a label of small letters, digits and . _ + -")
    if name == MODEL or is_key(name) or not isinstance(value, dict):
        return AxisValue(label, label, value, reader.settings(name, value, at))
    if not value:
        reader.fault(at, "expected keys of a run configuration with their values")
    parts = [reader.settings(key, item, (*at, key)) for key, item in value.items()]
    return AxisValue(label, label, label, tuple(setting for part in parts for setting in part))


def _check_labels(reader: Reader, place: Place, points: list[AxisValue]) -> None:
    seen: set[str] = set()
    for index, point in enumerate(points):
        if point.label in seen and point.label != "-":
            reader.fault((*place, index), f"two values have the label {point.label!r}; label them yourself")
        seen.add(point.label)


def _check_apart(sweep: SweepFile, axes: tuple[SweepAxis, ...]) -> None:
    """Raise where two axes set the same key: which of them holds would be a matter of order."""
    owner: dict[Place, str] = {}
    for axis in axes:
        for place in {setting.place for point in axis.points for setting in point.settings}:
            if owner.setdefault(place, axis.name) != axis.name:
                text = f"the axes {owner[place]} and {axis.name} both set {dotted(place)}; make them one axis"
                raise ConfigurationError(sweep.complaint(("matrix", axis.name), text))


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
    return any(_names().get(".".join(parts[:count])) == "setting" for count in range(1, len(parts) + 1))


def is_section(key: str) -> bool:
    """Whether a dotted name is that of a section of a run's configuration."""
    return _names().get(key) == "section"


def keys_of(section: str = "") -> list[str]:
    """Return the names of all settings, or of those below a section."""
    below = f"{section}." if section else ""
    return [name for name, kind in _names().items() if kind == "setting" and name.startswith(below)]


def _meant(key: str) -> str:
    """Return the end of a sentence about an unknown name: which may have been meant, and where all are listed."""
    names, leaf = keys_of(), key.rpartition(".")[2]
    close = get_close_matches(key, names, n=1) or [n for n in names if n.rpartition(".")[2] == leaf]
    guess = f"; did you mean {close[0]!r}?" if close else "."
    return f"{guess} docs/configuration.md lists them; an axis of several keys is a mapping of labels to keys"


@cache
def _names() -> dict[str, Literal["section", "setting"]]:
    """Return the kind of each dotted name of a run's configuration."""

    def walk(model: type[BaseModel], before: str) -> Iterator[tuple[str, Literal["section", "setting"]]]:
        for name, field in model.model_fields.items():
            kind = field.annotation
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                yield f"{before}{name}", "section"
                yield from walk(kind, f"{before}{name}.")
            else:
                yield f"{before}{name}", "setting"

    return dict(walk(RunConfig, ""))
