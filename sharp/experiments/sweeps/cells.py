"""From a sweep file to its cells: every combination of the axes, without the excluded ones, with the included ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any

from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.experiments.sweeps.axes import (
    LABEL,
    MODEL,
    AxisValue,
    Reader,
    Setting,
    Shown,
    SweepAxis,
    is_key,
    read_axes,
)
from sharp.experiments.sweeps.file import SweepFile
from sharp.runs.configure import WHAT as CONFIGURATION
from sharp.runs.configure import unknown_names
from sharp.runs.creation import with_absolute_paths
from sharp.yaml_documents import Document, Place, validate

MOST_CELLS = 10_000
_LONGEST_ID = 120
_ID = "id"


@dataclass(frozen=True)
class Cell:
    """One run of a sweep. `id` names its directory; `values` has what a table shows for each axis."""

    id: str
    values: Mapping[str, Shown]
    config: RunConfig


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
    axes = read_axes(sweep)
    if not axes and not sweep.form.include:
        raise ConfigurationError(sweep.complaint((), "expected a matrix, or runs to include; found neither"))
    drafts = [*_combinations(sweep, axes), *_included(sweep, axes)]
    _check_ids(drafts)
    return _checked(sweep, drafts)


def _combinations(sweep: SweepFile, axes: tuple[SweepAxis, ...]) -> list[_Draft]:
    size = prod(len(axis.points) for axis in axes)
    if size > MOST_CELLS:
        text = f"expected at most {MOST_CELLS} combinations, found {size}"
        raise ConfigurationError(sweep.complaint(("matrix",), text))
    names = [axis.name for axis in axes]
    drafts = [
        _draft(dict(zip(names, points, strict=True)), sweep.document.location_of(("matrix",)))
        for points in product(*(axis.points for axis in axes))
        if points
    ]
    for index, entry in enumerate(sweep.form.exclude):
        drafts = _without(sweep, axes, drafts, index, entry)
    return drafts


def _draft(points: Mapping[str, AxisValue], origin: str) -> _Draft:
    return _Draft("-".join(point.label for point in points.values()), points, origin)


def _without(
    sweep: SweepFile, axes: tuple[SweepAxis, ...], drafts: list[_Draft], index: int, entry: Mapping[str, Any]
) -> list[_Draft]:
    reader, wanted = Reader(sweep), {axis.name: axis for axis in axes}
    for name, value in entry.items():
        at = ("exclude", index, name)
        if name not in wanted:
            reader.fault(at, f"expected an axis of the matrix: {', '.join(wanted)}")
        elif not any(_is(point, value) for point in wanted[name].points):
            reader.fault(at, f"{value!r} is no value of this axis; valid: {_labels(wanted[name])}")
    if not entry:
        reader.fault(("exclude", index), "expected values of axes, found none")
    reader.end()
    return [d for d in drafts if not all(_is(d.points[name], value) for name, value in entry.items())]


def _labels(axis: SweepAxis) -> str:
    return ", ".join(point.label for point in axis.points)


def _is(point: AxisValue, value: Any) -> bool:
    return value == point.label or (value == point.written and isinstance(value, type(point.written)))


def _included(sweep: SweepFile, axes: tuple[SweepAxis, ...]) -> list[_Draft]:
    reader = Reader(sweep)
    drafts = [_entry(reader, axes, index, entry) for index, entry in enumerate(sweep.form.include)]
    reader.end()
    return drafts


def _entry(reader: Reader, axes: tuple[SweepAxis, ...], index: int, entry: Mapping[str, Any]) -> _Draft:
    at = ("include", index)
    known = {axis.name: axis for axis in axes}
    names = [*(name for name in known if name in entry), *(n for n in entry if n not in known and n != _ID)]
    points = {name: _included_point(reader, known.get(name), name, entry[name], index) for name in names}
    draft = _draft(points, reader.sweep.document.location_of(at))
    if not names:
        reader.fault(at, "expected keys of a run configuration or axes, with their values")
    given = entry.get(_ID, draft.id)
    if not isinstance(given, str) or not LABEL.fullmatch(given):
        reader.fault((*at, _ID), f"expected small letters, digits and . _ + -, found {given!r}")
    return _Draft(str(given), points, draft.origin)


def _included_point(reader: Reader, axis: SweepAxis | None, name: str, value: Any, index: int) -> AxisValue:
    at = ("include", index, name)
    known = next((point for point in axis.points if _is(point, value)), None) if axis else None
    if known is not None:
        return known
    if axis is not None and name != MODEL and not is_key(name):
        reader.fault(at, f"{value!r} is no value of this axis; valid: {_labels(axis)}")
        return AxisValue("-", None, value, ())
    settings = reader.settings(name, value, at)
    label = reader.label(name, value, at) if settings else "-"
    return AxisValue(label, value if isinstance(value, Shown) else label, value, settings)


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
    names = _Names()
    for draft in drafts:
        document = _document(sweep.base, draft)
        try:
            config = validate(document, RunConfig, ConfigurationError, CONFIGURATION)
        except ConfigurationError as error:
            wrong |= dict.fromkeys(str(error).splitlines())
            continue
        wrong |= dict.fromkeys(document.error_at(place, text) for place, text in names.unknown(config))
        values = {name: point.shown for name, point in draft.points.items()}
        cells.append(Cell(draft.id, values, with_absolute_paths(config)))
    if wrong:
        raise ConfigurationError("\n".join(wrong))
    return tuple(cells)


def _document(base: Document, draft: _Draft) -> Document:
    document = base
    for setting in _settings(draft):
        document = document.with_value(setting.place, setting.value, setting.origin)
    return document


def _settings(draft: _Draft) -> Iterator[Setting]:
    for point in draft.points.values():
        yield from point.settings


class _Names:
    """Looks up the names in configurations, each combination of them once."""

    def __init__(self) -> None:
        self._known: dict[str, list[tuple[Place, str]]] = {}

    def unknown(self, config: RunConfig) -> list[tuple[Place, str]]:
        """Return the places of names that name nothing, and what they should have named."""
        runs = (config.genesis.replay_from, config.genesis.prior_run)
        key = repr((config.problem, config.models, config.feedback.metrics, runs))
        if key not in self._known:
            self._known[key] = list(unknown_names(config))
        return self._known[key]
