"""Values as models write them: ids of candidates, words of a list, numbers, text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from types import NoneType, UnionType
from typing import Any, get_args

Allowed = type | UnionType | Sequence[str]
"""What a value may be: of a type, of a union of types, or one of some words."""

_FILLER = re.compile(r"\b(?:candidate|solver|program|code|id|number|no)\b")
_YES_NO = {"yes": True, "true": True, "no": False, "false": False}
_TYPE_NAMES: Mapping[type, str] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    list: "a list",
    dict: "an object",
    NoneType: "null",
}


class Ids:
    """Ids as models write them: in other case, with other leading zeros, after a word, as a bare number."""

    def __init__(self, ids: Iterable[str]) -> None:
        self.ids = tuple(dict.fromkeys(ids))
        self.meant: dict[tuple[str, ...], set[str]] = {}
        for name in self.ids:
            parts = self._parts(name)
            for key in (parts, tuple(part for part in parts if part.isdigit())):
                self.meant.setdefault(key, set()).add(name)

    def __str__(self) -> str:
        return ", ".join(self.ids)

    def match(self, value: object) -> str | None:
        """Return the one id that is meant, None where there is none or more than one."""
        if isinstance(value, bool) or not isinstance(value, str | int):
            return None
        name = str(value).strip()
        parts = self._parts(name)
        meant = {name} if name in self.ids else self.meant.get(parts, set()) if parts else set()
        return next(iter(meant)) if len(meant) == 1 else None

    @staticmethod
    def _parts(name: str) -> tuple[str, ...]:
        parts = re.findall(r"[a-z]+|[0-9]+", _FILLER.sub(" ", name.lower()))
        return tuple((part.lstrip("0") or "0") if part.isdigit() else part for part in parts)


def checked(value: object, allowed: Allowed) -> object:
    """Return a value in the form that is allowed, or raise ValueError.

    Words are matched whatever their case; yes and no stand for true and false, and the other way round.
    """
    if isinstance(allowed, type | UnionType):
        kinds = get_args(allowed) or (allowed,)
        for kind in kinds:
            with suppress(ValueError, OverflowError):
                return _typed(value, kind)
        raise ValueError(f"not {expected(allowed)}")
    word = {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
    for each in allowed:
        if _plain(each) == _plain(word):
            return each
    raise ValueError(f"not {expected(allowed)}")


def expected(allowed: Allowed) -> str:
    """Return in words what is allowed."""
    if isinstance(allowed, type | UnionType):
        return " or ".join(_TYPE_NAMES[kind] for kind in get_args(allowed) or (allowed,))
    return f"one of {', '.join(allowed)}"


def shown(value: object) -> str:
    """Return a value as an error message shows it."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}…"


def text_of(value: object) -> str:
    """Return a value as text; nothing is an empty text."""
    return "" if value is None else str(value).strip()


def texts_of(value: object) -> tuple[str, ...]:
    """Return the texts of a list, or of a single value."""
    listed = value if isinstance(value, list) else [value]
    return tuple(text for item in listed if (text := text_of(item)))


def _typed(value: object, kind: type) -> Any:
    if kind is bool and isinstance(value, str) and _plain(value) in _YES_NO:
        return _YES_NO[_plain(value)]
    if kind in (int, float) and isinstance(value, int | float | str) and not isinstance(value, bool):
        number = kind(value)
        if number == float(value) or math.isnan(number):
            return number
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"not {expected(kind)}")
    return value


def _plain(word: str) -> str:
    return re.sub(r"[\s_-]+", " ", word.strip().lower())
