"""Slips in the playbook's programs: a lost sign, an index off by one, a forgotten import, a wrong coefficient."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Slip = Callable[[str, random.Random], str]
"""Returns the changed code, or the same where there is nothing to change."""

_IMPORT = re.compile(r"^(?:import|from) .*\n", re.MULTILINE)
# Lines of the equations, and those that set a constant: what is wrong there is wrong mathematics.
_EQUATION = re.compile(r"^ .*\bdiff\(.*,$", re.MULTILINE)
_CONSTANT = re.compile(r"^\w+ = -?[\d.]+(?:e[+-]?\d+)?$", re.MULTILINE)
_SIGN = re.compile(r" [+-] |(?<![\w)])-(?=\w)")
_NUMBER = re.compile(r"(?<![\w.,] )(?<![\w.\[])\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w.\])])")
_INDICES = (
    (re.compile(r"np\.arange\(n \+ 1\)"), "np.arange(n)"),
    (re.compile(r"\(-1, (?=\d)"), "(-2, "),
    (re.compile(r"\(0, (?=\d)"), "(1, "),
    (re.compile(r"axes\[0\]\[2\]"), "axes[0][3]"),
    (re.compile(r"points\[:, 0\]"), "points[:, 1]"),
)


def mistaken_program(code: str, rng: random.Random) -> str:
    """Return a program with one slip; the same program where it leaves no room for any."""
    slips = [_lose_import, _lose_sign, _miss_index, _scale_coefficient]
    rng.shuffle(slips)
    return next((changed for slip in slips if (changed := slip(code, rng)) != code), code)


def _lose_import(code: str, rng: random.Random) -> str:
    return _replaced(code, list(_IMPORT.finditer(code)), rng, lambda _: "")


def _lose_sign(code: str, rng: random.Random) -> str:
    """Turn a sign of an equation around, or put one before a derivative where there is none."""
    signs = _within(code, _EQUATION, _SIGN)
    if signs:
        return _replaced(code, signs, rng, _turned)
    return _replaced(code, _within(code, _EQUATION, re.compile(r"\bdiff\(")), rng, lambda _: "-diff(")


def _turned(sign: str) -> str:
    return {" + ": " - ", " - ": " + "}.get(sign, "")


def _miss_index(code: str, rng: random.Random) -> str:
    pattern, text = rng.choice(
        [(pattern, text) for pattern, text in _INDICES if pattern.search(code)] or [_INDICES[0]]
    )
    return pattern.sub(text, code, count=1)


def _scale_coefficient(code: str, rng: random.Random) -> str:
    """Put a constant, or a number of an equation, off by a factor."""
    numbers = [*_within(code, _CONSTANT, _NUMBER), *_within(code, _EQUATION, _NUMBER)]
    numbers = [number for number in numbers if float(number[0]) != 0]
    factor = rng.choice([10.0, 0.1, 2.0])
    return _replaced(code, numbers, rng, lambda number: repr(float(number) * factor))


def _within(code: str, line: re.Pattern[str], part: re.Pattern[str]) -> list[re.Match[str]]:
    """Return where a part occurs in lines of a kind."""
    return [
        found for place in line.finditer(code) for found in part.finditer(code, place.start(), place.end())
    ]


def _replaced(
    code: str, places: list[re.Match[str]], rng: random.Random, change: Callable[[str], str]
) -> str:
    if not places:
        return code
    place = rng.choice(places)
    return code[: place.start()] + change(place[0]) + code[place.end() :]
