"""Blocks as text: whole where there is no terminal, wrapped and emphasised where there is one."""

from __future__ import annotations

import re

import pytest

from sharp.document import (
    Bullets,
    Code,
    Curve,
    CurvePanel,
    Details,
    Facts,
    Figure,
    Heading,
    Link,
    ModelText,
    Note,
    Panels,
    Paragraph,
    Table,
    render_terminal,
)
from sharp.document.text import clean
from tests.helpers.documents.hostile_texts import TEXTS

CHART = Panels("a", "b", "c", (CurvePanel("", (Curve.of("u", [0, 1], [1, 2]),)),))
LONG = "word " * 60
TABLE = Table(("name", "count", "reason"), (("a", "1", LONG), ("bcd", "1,000", "x")), ("count",), "Runs")


def test_columns_are_aligned_numbers_to_the_right_and_no_cell_is_cut() -> None:
    caption, *lines = render_terminal(TABLE).splitlines()
    assert caption == "Runs"
    assert lines == [
        "name  count  reason",
        f"a         1  {LONG}".rstrip(),
        "bcd   1,000  x",
    ]


def test_a_terminal_has_no_line_that_is_too_long_and_loses_no_word() -> None:
    text = re.sub(r"\x1b\[[\d;]*m", "", render_terminal(TABLE, width=60))
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("word") == 60
    assert "\x1b[" in render_terminal(TABLE, width=60)
    assert "\x1b" not in render_terminal(TABLE)


def test_every_kind_of_block_has_its_words() -> None:
    text = render_terminal(
        Heading("Head"),
        Paragraph(LONG),
        Facts((("name", "value"), ("longer name", "second\nline"))),
        Bullets(("one", "two")),
        Note("beware", "warning"),
        ModelText("said", "gpt"),
        Code("x = 1\n  y"),
        Link("report", "a/report.html"),
        Figure(CHART, "caption", "in words"),
        Details("more", (Paragraph("inner"),)),
    )
    assert LONG.rstrip() in text.splitlines()
    for words in (
        *(
            "Head",
            "  name         value",
            "               line",
            "  - two",
            "warning: beware",
            "Written by gpt:\nsaid",
        ),
        *("x = 1\n  y", "report: a/report.html", "in words", "more\ninner"),
    ):
        assert words in text


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("width", [None, 4000])
def test_no_text_is_obeyed_by_the_terminal(text: str, width: int | None) -> None:
    shown = render_terminal(Paragraph(f"[bold]{text}"), Table(("a",), ((text,),)), width=width)
    plain = re.sub(r"\x1b\[[\d;]*m", "", shown) if width else shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", plain.replace("\t", " "))
    assert f"[bold]{clean(text).splitlines()[0] if text else ''}".split() == plain.split("\n")[0].split()
