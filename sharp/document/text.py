"""Texts and numbers as a report shows them."""

from __future__ import annotations

import re
import textwrap
from math import ceil, isfinite

MISSING = "–"

# Characters that could hide or reorder text, or that HTML and XML cannot hold: they are shown, not obeyed.
_CONTROL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)
_LINE_ENDS = re.compile("\r\n?|\u2028|\u2029")


def clean(text: str) -> str:
    """Return a text with one kind of line end, and with invisible control characters made visible."""
    return _CONTROL.sub(_visible, _LINE_ENDS.sub("\n", text))


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "\ufffd" if code > 0xD7FF else f"⟨U+{code:04X}⟩"


def clip(text: str, limit: int) -> str:
    """Return at most `limit` characters of a text, and say how many are left out."""
    return text if len(text) <= limit else f"{text[:limit]} … ({len(text) - limit} more characters)"


def one_line(text: str) -> str:
    """Return a text with every run of white space as one blank."""
    return " ".join(text.split())


def error_text(value: float | None) -> str:
    """Return an error, a residual or another small number: four digits and a power of ten."""
    if value is None or not isfinite(value):
        return MISSING
    return f"{value:.3e}"


def number_text(value: float | None) -> str:
    """Return a number in three digits; thousands without an exponent."""
    if value is None or not isfinite(value):
        return MISSING
    text = f"{value:.3g}"
    return f"{float(text):.0f}" if 1000 <= abs(float(text)) < 100_000 else text


def count_text(value: int | None) -> str:
    """Return a whole number with its thousands apart."""
    return MISSING if value is None else f"{value:,}"


def share_text(value: float | None) -> str:
    """Return a share in per cent."""
    return MISSING if value is None else f"{value:.0%}"


def duration_text(seconds: float | None) -> str:
    """Return a time span in the units that suit it."""
    if seconds is None:
        return MISSING
    if seconds < 100:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 100:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def left_text(elapsed: float, done: int, total: int, most: str = "", since: float = 0.0) -> str:
    """Return `, 12 s left`: how long the rest takes at the rate so far; empty in the first two seconds, and at the end.

    `done` of `total` took `elapsed` seconds, and that was `since` seconds ago: empty, too, once the rest should be
    done. `most` is put before the time where there may be less to do than `total`.
    """
    if elapsed + since < 2 or not 0 < done < total:
        return ""
    left = elapsed / done * (total - done) - since
    return f", {most}{duration_text(ceil(left))} left" if left > 0 else ""


def wrapped(text: str, width: int) -> list[str]:
    """Return a line as lines of a terminal, broken between words and set in below its beginning; paths stay whole."""
    indent = " " * (len(text) - len(text.lstrip()) + 4)
    return textwrap.wrap(
        text, max(width, 20), subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    ) or [""]


def plural(count: int, noun: str) -> str:
    """Return `1 round`, `2 rounds`."""
    return f"{count_text(count)} {noun}{'' if count == 1 else 's'}"
