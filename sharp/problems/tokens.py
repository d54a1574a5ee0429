"""The tokens of the expression grammar."""

from __future__ import annotations

import re
from dataclasses import dataclass

MAX_LENGTH = 2000
MAX_TOKENS = 300

_TOKEN = re.compile(
    r"(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z][A-Za-z0-9]*(?:_[A-Za-z0-9]+)*)"
    r"|(?P<mark>_[A-Za-z][A-Za-z0-9]*)"
    r"|(?P<symbol>\*\*|[<>=!]=|[-+*/^(),<>=])"
)


class GrammarError(Exception):
    """A text is not of the grammar: what is wrong and at which column, counted from 1."""

    def __init__(self, column: int, message: str) -> None:
        super().__init__(message)
        self.column = column
        self.message = message


@dataclass(frozen=True, slots=True)
class Token:
    """A number, a name, a derivative mark such as `_xx`, a symbol (which is its own kind), or the end."""

    kind: str
    text: str
    column: int

    def __str__(self) -> str:
        return "the end" if self.kind == "end" else f"'{self.text}'"

    @property
    def after(self) -> int:
        """The column that follows the token."""
        return self.column + len(self.text)


def tokenize(text: str) -> list[Token]:
    """Split a text; the last token is the end. Raises `GrammarError`."""
    if len(text) > MAX_LENGTH:
        raise GrammarError(MAX_LENGTH, f"the text is longer than {MAX_LENGTH} characters")
    tokens, position = [], 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is not None:
            kind = match.group() if match.lastgroup == "symbol" else str(match.lastgroup)
            tokens.append(Token(kind, match.group(), position + 1))
        elif not text[position].isspace():
            raise GrammarError(position + 1, _unexpected(text[position]))
        position = match.end() if match else position + 1
    if len(tokens) > MAX_TOKENS:
        raise GrammarError(tokens[MAX_TOKENS].column, f"the text has more than {MAX_TOKENS} symbols")
    return [*tokens, Token("end", "", len(text) + 1)]


def _unexpected(character: str) -> str:
    return (
        f"unexpected character {character!r}; expected numbers, names of ASCII letters, "
        "parentheses, commas, + - * / ** and comparisons"
    )
