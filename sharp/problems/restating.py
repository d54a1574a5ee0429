"""The same statement as other people would put it: with slips of the pen, in another order, with what does not matter.

A statement's facts stay: no number, name or formula is touched, nothing is added that answers a question about the
problem.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from zlib import crc32

from sharp.problems.spec import ProblemStatement

_LONG = re.compile(r"(?<![\\\w])[A-Za-z]{6,}(?![\w(^])")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])\s*")
# About neither equation, place, time nor condition.
_BESIDE = (
    "The report is due on Friday, and the binder on the shelf is green.",
    "My predecessor used a program whose name nobody remembers.",
    "We have paid for the licence until the end of the year.",
    "The drawing is on the second page; its frame was printed crooked.",
)


def _with_typos(text: str) -> str:
    """Swap two neighbouring letters inside every third long word, beginning with the first."""
    count = 0

    def slip(found: re.Match[str]) -> str:
        nonlocal count
        word, count = found[0], count + 1
        if count % 3 != 1:
            return word
        place = 1 + crc32(word.encode()) % (len(word) - 3)
        return word[:place] + word[place + 1] + word[place] + word[place + 2 :]

    return _LONG.sub(slip, text)


def _scrambled(text: str) -> str:
    """Begin in the middle: the second half of the sentences first."""
    sentences = [sentence for sentence in _SENTENCE.split(text) if sentence]
    half = (len(sentences) + 1) // 2
    return " ".join([*sentences[half:], *sentences[:half]])


def _with_asides(text: str) -> str:
    first, second = (_BESIDE[crc32(text.encode() + end) % len(_BESIDE)] for end in (b"a", b"b"))
    return f"{first} {text}" if first == second else f"{first} {text} {second}"


RESTATED: Mapping[str, Callable[[str], str]] = {
    "typos": _with_typos,
    "scrambled": _scrambled,
    "distracting": _with_asides,
}


def in_other_styles(statements: tuple[ProblemStatement, ...]) -> tuple[ProblemStatement, ...]:
    """Return statements, and in every style of `RESTATED` that none has the first one whose text it changes."""
    own = {said.style for said in statements}
    others = []
    for style, write in RESTATED.items():
        new = next((write(said.text) for said in statements if write(said.text) != said.text), None)
        if style not in own and new is not None:
            others.append(ProblemStatement.model_validate({"style": style, "text": new}))
    return (*statements, *others)
