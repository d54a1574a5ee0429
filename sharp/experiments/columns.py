"""Documented columns: what a field of a row means, and its unit."""

from __future__ import annotations

from dataclasses import field, fields
from types import EllipsisType
from typing import Any


def column(meaning: str, default: Any = None, unit: str = "") -> Any:
    """Return a dataclass field with its meaning and unit; `...` makes it required, a type makes an empty value."""
    documented = {"meaning": meaning, "unit": unit}
    if isinstance(default, EllipsisType):
        return field(metadata=documented)
    if isinstance(default, type):
        return field(default_factory=default, metadata=documented)
    return field(default=default, metadata=documented)


def dtypes_of(row: type[Any]) -> dict[str, str]:
    """Return the pandas dtype of each column of a class of rows; values with parts are Python objects."""
    return {each.name: _dtype(str(each.type)) for each in fields(row)}


def meanings_of(row: type[Any]) -> list[dict[str, str]]:
    """Return name, dtype, unit and meaning of each column of a class of rows."""
    dtypes = dtypes_of(row)
    return [{"name": each.name, "dtype": dtypes[each.name], **each.metadata} for each in fields(row)]


def _dtype(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    if plain.startswith(("Mapping", "tuple", "BestErrors")):
        return "object"
    return {"int": "Int64", "float": "float64", "bool": "boolean"}.get(plain, "string")
