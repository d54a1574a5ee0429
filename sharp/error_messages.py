"""Parts of error sentences: the valid values, and which of them was probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_SHOWN = 40
_KINDS = {
    bool: "a truth value",
    int: "a number",
    float: "a number",
    str: "a text",
    list: "a list",
    dict: "a mapping",
}


def valid_values(kind: str, found: str, valid: Iterable[str]) -> str:
    """Return `did you mean 'x'? Valid names: x, y`, or `no names are valid here`."""
    names = sorted(set(valid), key=lambda name: (name.lower(), name))
    if not names:
        return f"no {kind} are valid here"
    close = [name for name in names if name.lower() == found.lower()] or get_close_matches(found, names, n=1)
    hint = f"did you mean '{close[0]}'? " if close else ""
    shown = ", ".join(names[:_SHOWN]) + (", …" if len(names) > _SHOWN else "")
    return f"{hint}valid {kind}: {shown}"


def describe(value: Any) -> str:
    """Return what a YAML value is, for `found …`."""
    if value is None:
        return "nothing"
    if isinstance(value, (bool, int, float, str)):
        return f"{_KINDS[type(value)]} {clip(repr(value))}"
    return _KINDS.get(type(value), type(value).__name__)


def clip(text: str, width: int = 80) -> str:
    """Return the text, shortened in its middle where it is long."""
    return text if len(text) <= width else f"{text[: width - 20]} … {text[-15:]}"
