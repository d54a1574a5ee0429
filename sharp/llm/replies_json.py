"""JSON as models write it: with comments, trailing commas, Python's True, False and None, single quotes.

Valid JSON is read exactly as the standard library reads it; the tolerances only widen what is accepted.
Reading takes time proportional to the text, whatever the text.
"""

from __future__ import annotations

import math
import re
from typing import Any

from sharp.errors import ReplyError
from sharp.llm.replies_text import without_surrogates

MAX_DEPTH = 64
"""The deepest nesting that is read."""

_GAP = re.compile(r"(?:\s++|//[^\n]*+|#[^\n]*+)*+")
_STRING = re.compile(r""""((?:[^"\\]++|\\.)*+)"|'((?:[^'\\]++|\\.)*+)'""", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_WORD = re.compile(r"[+-]?[\w.]++(?:(?<=[eE])[+-][0-9]++)?+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+")
_BRACKET = re.compile(_STRING.pattern + r"|[\[\]{}]", re.DOTALL)
_OPENING = re.compile(r"[\[{]")
_OPENING_IN_PROSE = re.compile(r"""\[|\{(?=\s*+["'/#])""")
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_WORDS: dict[str, float | bool | None] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "NaN": math.nan,
    "Infinity": math.inf,
    "-Infinity": -math.inf,
}


class _BrokenError(Exception):
    """The text stops being JSON at a position."""

    def __init__(self, position: int, expected: str) -> None:
        super().__init__(expected)
        self.position = position


def last_object(text: str, *, prose: bool = False) -> dict[str, Any] | None:
    """Return the last JSON object of a text that is not part of another value, or None where there is none.

    In prose, braces that hold no quoted key (formulas, sets, `{}`) are not taken for an object. Raises
    ReplyError with the place where the last object breaks off.
    """
    found: dict[str, Any] | None = None
    failure: _BrokenError | None = None
    reader, position = _Reader(text), 0
    pattern = _OPENING_IN_PROSE if prose else _OPENING
    while opening := pattern.search(text, position):
        try:
            value = reader.read(opening.start())
        except _BrokenError as broken:
            if reader.in_object or not prose:
                failure, position = broken, _end_of_brackets(text, opening.start())
            else:
                position = max(broken.position, opening.end())
        else:
            position = reader.position
            if isinstance(value, dict) and (value or not prose):
                found, failure = value, None
    if failure:
        raise ReplyError(_describe(text, failure))
    return found


def _end_of_brackets(text: str, start: int) -> int:
    depth = 0
    for token in _BRACKET.finditer(text, start):
        depth += 1 if token[0] in "{[" else -1 if token[0] in "}]" else 0
        if depth == 0:
            return token.end()
    return len(text)


def _describe(text: str, broken: _BrokenError) -> str:
    before = text[: broken.position]
    line, column = before.count("\n") + 1, broken.position - before.rfind("\n")
    near = text[broken.position : broken.position + 40].split("\n")[0]
    found = f"found {near!r}" if near.strip() else "the line ends there"
    if not text[broken.position :].strip():
        found = "the text ends there"
    return f"The JSON breaks at line {line}, column {column}: expected {broken}, {found}."


class _Reader:
    """A recursive-descent reader of a text; every method leaves the position behind what it read."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0
        self.in_object = False
        self._last_comment_end = text.rfind("*/")

    def read(self, position: int) -> Any:
        """Read the value at a position; `in_object` says whether the key of an object was met on the way."""
        self.position, self.in_object = position, False
        return self._value(0)

    def _value(self, depth: int) -> Any:
        if depth > MAX_DEPTH:
            raise _BrokenError(self.position, f"at most {MAX_DEPTH} levels of nesting")
        self._skip()
        match self.text[self.position : self.position + 1]:
            case "{":
                return self._members("}", depth)
            case "[":
                return self._members("]", depth)
            case '"' | "'":
                return self._string()
            case _:
                return self._word()

    def _members(self, closing: str, depth: int) -> Any:
        """Read what an object or an array holds, up to its closing bracket."""
        is_object, keys, values = closing == "}", list[str](), list[Any]()
        self.position += 1
        while not self._take(closing):
            if is_object:
                keys.append(self._key())
            values.append(self._value(depth + 1))
            if not self._take(",") and not self._sees(closing):
                raise _BrokenError(self.position, f"',' or '{closing}'")
        return dict(zip(keys, values, strict=True)) if is_object else values

    def _key(self) -> str:
        if not self._sees('"') and not self._sees("'"):
            raise _BrokenError(self.position, "a key in double quotes or '}'")
        key = self._string()
        if not self._take(":"):
            raise _BrokenError(self.position, f"':' after the key {key[:40]!r}")
        self.in_object = True
        return key

    def _string(self) -> str:
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise _BrokenError(self.position, "a string that is closed")
        self.position = match.end()
        text = match[1] if match[1] is not None else match[2]
        return without_surrogates(_ESCAPE.sub(_unescape, text)) if "\\" in text else text

    def _word(self) -> float | bool | None:
        match = _WORD.match(self.text, self.position)
        word = match[0] if match else ""
        if word not in _WORDS and not _NUMBER.fullmatch(word):
            raise _BrokenError(self.position, "a value")
        try:
            value = _WORDS[word] if word in _WORDS else (float if set(word) & set(".eE") else int)(word)
        except ValueError:
            raise _BrokenError(self.position, "a number of fewer digits") from None
        self.position += len(word)
        return value

    def _sees(self, mark: str) -> bool:
        self._skip()
        return self.text.startswith(mark, self.position)

    def _take(self, mark: str) -> bool:
        seen = self._sees(mark)
        self.position += len(mark) if seen else 0
        return seen

    def _skip(self) -> None:
        """Skip white space and comments."""
        while gap := _GAP.match(self.text, self.position):
            self.position = gap.end()
            # Without this bound, comments that nothing closes would make reading quadratic.
            if not self.text.startswith("/*", self.position) or self.position + 2 > self._last_comment_end:
                return
            self.position = self.text.index("*/", self.position + 2) + 2


def _unescape(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 5:
        return chr(int(code[1:], 16))
    return _ESCAPES.get(code, match[0])
