"""YAML files that people write: read strictly, checked against a model, every complaint with its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from sharp.errors import SpecificationError

Model = TypeVar("Model", bound=BaseModel)
Place = tuple[str | int, ...]

# Where a user may have written a key itself instead of the name of its variable: the value is not repeated.
_SECRET = "api_key_env"  # noqa: S105


@dataclass(frozen=True)
class Document:
    """A mapping that people wrote, and where each key and item of it stands.

    `places` holds `file:line`, or the option of the command line that a value comes from.
    """

    data: dict[str, Any]
    places: Mapping[Place, str]

    def location_of(self, place: Place) -> str:
        """Return where the innermost part of a place stands that was written."""
        while place not in self.places:
            place = place[:-1]
        return self.places[place]

    def error_at(self, place: Place, text: str) -> str:
        """Return `file:line: path: text`."""
        return f"{self.location_of(place)}: {dotted(place)}: {text}"

    def with_value(self, place: Place, value: Any, origin: str) -> Document:
        """Return the document with one value set; what has no keys on the way there makes room."""
        changed = place[: 1 + _depth(self.data, place[:-1])]
        others = {known: at for known, at in self.places.items() if known[: len(changed)] != changed}
        return Document(_with(self.data, place, value), {**others, changed: origin})


def read_document(path: Path, error: type[Exception], what: str) -> Document:
    """Read a YAML file that must hold a mapping; `what` names the kind of document in sentences.

    Raises `error` with file and line if it cannot be read or is not YAML in the strict form of
    `sharp.yaml_source`: no key twice, no aliases or tags, and `1e-3` is a number.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise error(f"{path}: cannot be read: {failure.strerror}") from None
    except UnicodeDecodeError:
        raise error(f"{path}: is not UTF-8 text") from None
    data, lines = _read(text, str(path), error)
    if not isinstance(data, dict):
        raise error(f"{path}: expected a mapping with the keys of {what}, found {data!r:.80}")
    return Document(data, {place: f"{path}:{line}" for place, line in lines.items()})


def read_value(text: str, name: str, error: type[Exception]) -> Any:
    """Return the value that a text writes in YAML; raises `error` beginning with `name`."""
    return _read(text, name, error)[0]


def validate(document: Document, model: type[Model], error: type[Exception], what: str) -> Model:
    """Return the document as a value of `model`; raises `error` with one line for each complaint."""
    try:
        return model.model_validate(document.data)
    except ValidationError as failure:
        lines = (_sentence(document, model, fault, what) for fault in failure.errors())
        raise error("\n".join(lines)) from None


def read_named(
    name_or_path: str | Path,
    known: Mapping[str, Path],
    model: type[Model],
    error: type[Exception],
    what: str,
) -> Model:
    """Return the document that is called so in `known`, or lies in that file (anything that ends in `.yaml`).

    A named document has a key `name`, which must be that of its file. Raises `error`, which names file and line or
    lists the known names.
    """
    path = Path(name_or_path)
    if path.suffix not in (".yaml", ".yml"):
        if (name := str(name_or_path)) not in known:
            raise error(f"there is no {what.removeprefix('a ')} {name!r}{hint(name, known)}")
        path = known[name]
    value = validate(read_document(path, error, what), model, error, what)
    name = getattr(value, "name")  # noqa: B009  every named document has one
    if name != path.stem:
        raise error(f"{path}: the name {name!r} of {what} must be that of its file, {path.stem!r}")
    return value


_LISTED, _NEAREST = 40, 8  # names that a message lists at most; of more names, those nearest to the given one


def hint(name: str, valid: Iterable[str]) -> str:
    """Return `; did you mean …? Valid: …`, to be put behind a complaint about a name; of many names, the nearest."""
    valid = list(valid)
    close = get_close_matches(name, valid, n=1)
    shown, more = valid, ""
    if len(valid) > _LISTED:
        shown, more = get_close_matches(name, valid, _NEAREST, cutoff=0.0), f", … ({len(valid)} in all)"
    return (f"; did you mean {close[0]!r}?" if close else ".") + f" Valid: {', '.join(shown)}{more}"


def dotted(place: Place) -> str:
    """Return a place as people write it: `boundary.0.value`."""
    return ".".join(map(str, place))


def _read(text: str, name: str, error: type[Exception]) -> tuple[Any, Mapping[Place, int]]:
    from sharp.yaml_source import read_yaml

    try:
        source = read_yaml(text, name)
    except SpecificationError as failure:
        raise error(str(failure)) from None
    return source.value, source.lines


def _depth(data: Any, place: Place) -> int:
    """Count the parts of a place that lead from mapping to mapping."""
    below = data.get(place[0]) if place else None
    return 1 + _depth(below, place[1:]) if isinstance(below, dict) else 0


def _with(data: Any, place: Place, value: Any) -> Any:
    if not place:
        return value
    members = data if isinstance(data, dict) else {}
    return {**members, place[0]: _with(members.get(place[0]), place[1:], value)}


def _sentence(document: Document, model: type[BaseModel], fault: Any, what: str) -> str:
    place = tuple(part for part in fault["loc"] if part != "[key]")
    return f"{document.location_of(place)}: {_complaint(model, place, fault, what)}"


def _complaint(model: type[BaseModel], place: Place, fault: Any, what: str) -> str:
    name, kind, message = dotted(place), fault["type"], fault["msg"]
    if kind == "missing":
        return f"{name} is missing"
    if kind == "extra_forbidden":
        return (
            f"{name} is not a key of {what}{hint(str(place[-1]), model_at(model, place[:-1]).model_fields)}"
        )
    if kind == "value_error":
        return f"{name}: {message.removeprefix('Value error, ')}".removeprefix(": ")
    found = "" if _SECRET in place else f", found {fault['input']!r}"
    return f"{name}: {message[:1].lower()}{message[1:]}{found}"


def model_at(model: type[BaseModel], place: Place, variant: str | None = None) -> type[BaseModel]:
    """Return the model of the mapping at a place; where there are several, the one with the name of the variant."""
    for name in place:
        field = model.model_fields.get(str(name))
        if field is not None:  # otherwise an item of a list or a key of a mapping
            found = _models_in(field.annotation) or [model]
            model = next((each for each in found if each.__name__.lower() == variant), found[0])
    return model


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [found for part in get_args(annotation) for found in _models_in(part)]
