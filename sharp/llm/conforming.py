"""JSON values as models write them, in the shape of the schema that was asked for.

The schema decides what a value can mean: a list of one thing stands for the thing and the thing for the list, an
object of names for a list of named things, a pair for an object of two keys, nothing for an empty list. Where more
than one reading fits, the value stays as it is, and whoever checks it says what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from sharp.llm.json_schemas import JsonSchema
from sharp.llm.replies import is_allowed, lower_keys
from sharp.llm.replies_json import last_object

KeyNames = Mapping[str, Sequence[str]]
"""Other names that models give to keys."""

# Pairs on one line: "equations: s1.equations, domain = s2.domain". What parts a name from what is said of it.
_PAIR = r"\w+ *[:=] *[\w.\[\]\"'$]+"
_PAIRS = re.compile(rf"{_PAIR}(?: *[,;] *{_PAIR})*")
_SAID_OF = re.compile(r"\s*(?::|\s[–—-]|->|→|=>)\s+")
_NOTHING = re.compile(r"\W*(?:(?:none|no|null|n/a|nothing)\b.{0,20})?", re.IGNORECASE)


def conform(value: Any, schema: JsonSchema, names: KeyNames = MappingProxyType({})) -> Any:
    """Return a value in the shape of a schema, as far as it can only mean one thing in it."""
    match schema["type"]:
        case "array":
            listed = [
                conform(item, schema["items"], names) for item in _listed(value, schema["items"], names)
            ]
            return [item for item in listed if not _is_empty(item, schema["items"])]
        case "object" if "properties" in schema:
            return _object(value, schema["properties"], names)
        case "string" | "boolean":
            return _single(value, schema)
        case _:
            return value


def _listed(value: Any, item: JsonSchema, names: KeyNames) -> list[Any]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        value = (last_object(f'{{"listed": {value}}}') or {}).get("listed")
    if isinstance(value, str) and len(item.get("properties", ())) == 2 and _PAIRS.fullmatch(value.strip()):
        value = dict(re.split(r" *[:=] *", pair, maxsplit=1) for pair in re.split(r" *[,;] *", value.strip()))
    if value is None or value is False or (isinstance(value, str) and _NOTHING.fullmatch(value)):
        return []
    if not isinstance(value, Mapping) or "properties" not in item:
        return value if isinstance(value, list) else [value]
    if _properties_of(value, item["properties"], names):
        return [value]
    inner = next(iter(value.values())) if len(value) == 1 else None
    if isinstance(inner, list) and all(isinstance(entry, Mapping) for entry in inner):
        return inner
    return [[name, entry] for name, entry in value.items()]


def _object(value: Any, properties: Mapping[str, JsonSchema], names: KeyNames) -> Any:
    keys = [key for key in properties if key != "reasoning"]
    value = _under_keys(_as_mapping(value, keys, properties, names), keys, properties, names)
    if not isinstance(value, Mapping):
        return value
    lower = lower_keys(value)
    called = _properties_of(lower, properties, names)
    found = {key: lower[name] for key, name in called.items()}
    rest = {key: entry for key, entry in lower.items() if key not in called.values()}
    for key in (key for key in keys if key not in found):
        meant = [name for name, entry in rest.items() if _can_only_be(entry, properties[key], len(keys))]
        if len(meant) == 1:
            found[key] = rest.pop(meant[0])
        elif word := _affirmed(rest, properties[key]):
            found[key] = word
    return {**rest, **{key: conform(entry, properties[key], names) for key, entry in found.items()}}


def _as_mapping(
    value: Any, keys: Sequence[str], properties: Mapping[str, JsonSchema], names: KeyNames
) -> Any:
    """Return the object that a text, a list of one, or a name with what is said of it stands for."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = last_object(value) or value
    if isinstance(value, str) and _SAID_OF.search(value):
        value = _SAID_OF.split(value, maxsplit=1)
    match value:
        case [dict(only)]:
            return only
        case [str(name), dict(entry)] if len(keys) > 2 or _properties_of(entry, properties, names).keys() - {
            keys[0]
        }:
            return {keys[0]: name, **entry}
        case [str(name), entry] if len(keys) > 1:
            return dict(zip(keys, (name, entry), strict=False))
    return value


def _under_keys(
    value: Any, keys: Sequence[str], properties: Mapping[str, JsonSchema], names: KeyNames
) -> Any:
    """Return an object that has none of the keys under them: a name with its text, or entries by their names."""
    if not isinstance(value, Mapping) or _properties_of(lower_keys(value), properties, names):
        return value
    first = properties[keys[0]]["type"] if keys else ""
    if len(value) == 1 and len(keys) > 1 and first == "string":
        return dict(zip(keys, next(iter(value.items())), strict=False))
    return {keys[0]: value} if len(keys) == 1 and len(value) > 1 and first == "array" else value


def _can_only_be(entry: Any, schema: JsonSchema, keys: int) -> bool:
    """Whether what stands under an unknown key can be what lacks: one of its words, its list of objects, its text.

    A text counts in an object of two keys alone, a name and what is said about it.
    """
    if schema["type"] == "array":
        objects = isinstance(entry, list) and all(isinstance(item, Mapping) for item in entry)
        return objects and entry != [] and "properties" in schema["items"]
    if "enum" in schema:
        return isinstance(entry, str) and _fits(entry, schema)
    return keys == 2 and schema["type"] == "string" and isinstance(entry, str)


def _affirmed(rest: Mapping[str, Any], schema: JsonSchema) -> str | None:
    """Return the one word of a choice that a key such as `"valid": true` or `"valid": false` affirms."""
    words = schema.get("enum", ())
    said = [
        name.removeprefix("is_") if entry else f"in{name.removeprefix('is_')}"
        for name, entry in rest.items()
        if isinstance(entry, bool)
    ]
    named = [word for word in said if word in words]
    return named[0] if len(named) == 1 else None


def _is_empty(value: Any, schema: JsonSchema) -> bool:
    """Whether an entry of a list says nothing; words such as "none needed" do where an object is wanted."""
    if isinstance(value, Mapping):
        return not any(value.values())
    words = schema["type"] == "object" and isinstance(value, str) and _NOTHING.fullmatch(value)
    return value in ("", None) or bool(words)


def _properties_of(
    value: Mapping[str, Any], properties: Mapping[str, JsonSchema], names: KeyNames
) -> dict[str, str]:
    """Return the key of a value for each property that it names: as it is, in another number, by another name."""
    found = {}
    for key in properties:
        stem = re.sub(r"e?s\Z", "", key)
        others = (stem, f"{stem}s", f"{stem}es", *names.get(key, ()))
        called = (
            each for each in (key, *others) if each in value and (each == key or each not in properties)
        )
        if (name := next(called, None)) is not None:
            found[key] = name
    return found


def _single(value: Any, schema: JsonSchema) -> Any:
    """Return the one text, word or truth value that a list or an object holds."""
    if isinstance(value, list) and len(value) == 1:
        return _single(value[0], schema)
    if not isinstance(value, Mapping):
        return value
    words = [entry for entry in value.values() if isinstance(entry, str | bool) and _fits(entry, schema)]
    return words[0] if len(words) == 1 else value


def _fits(entry: str | bool, schema: JsonSchema) -> bool:
    if "enum" in schema:
        return is_allowed(entry, schema["enum"])
    wanted: object = schema["type"]
    return isinstance(entry, bool) == (wanted == "boolean")
