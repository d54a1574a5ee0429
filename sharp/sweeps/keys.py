"""The keys of a run's configuration by their dotted names."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from pydantic import BaseModel

from sharp.config import RunConfig
from sharp.runs.configure import place_of


def is_key(key: str) -> bool:
    """Whether a dotted name is that of a single setting of a run's configuration, or within a mapping of settings."""
    model: type[BaseModel] | None = RunConfig
    for name in place_of(key):
        if model is None:  # below a setting: servers by model, weights by kind
            return True
        if name not in model.model_fields:
            return False
        model = _section(model, str(name))
    return model is None


def is_section(key: str) -> bool:
    """Whether a dotted name is that of a section of a run's configuration."""
    return key in {prefix for prefix, _ in _sections(RunConfig, "")}


def keys_of(section: str = "") -> list[str]:
    """Return the names of all settings, or of those below a section."""
    sections: dict[str, type[BaseModel]] = {"": RunConfig, **dict(_sections(RunConfig, ""))}
    names = (
        f"{prefix}.{name}".removeprefix(".")
        for prefix, model in sections.items()
        for name in model.model_fields
        if _section(model, name) is None
    )
    return [name for name in names if name.startswith(f"{section}." if section else "")]


def meant(key: str) -> str:
    """Return the end of a sentence about a name that is none: which may have been meant, and where all stand."""
    names, leaf = keys_of(), key.rpartition(".")[2]
    close = get_close_matches(key, names, n=1) or [n for n in names if n.rpartition(".")[2] == leaf]
    guess = f"; did you mean {close[0]!r}?" if close else "."
    return f"{guess} docs/configuration.md lists them; an axis of several keys is a mapping of labels to keys"


def _sections(model: type[BaseModel], prefix: str) -> Iterator[tuple[str, type[BaseModel]]]:
    for name in model.model_fields:
        section = _section(model, name)
        if section is not None:
            yield f"{prefix}{name}", section
            yield from _sections(section, f"{prefix}{name}.")


def _section(model: type[BaseModel], name: str) -> type[BaseModel] | None:
    annotation = model.model_fields[name].annotation
    return annotation if isinstance(annotation, type) and issubclass(annotation, BaseModel) else None
