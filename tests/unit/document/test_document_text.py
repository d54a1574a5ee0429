import re
from math import inf, nan

import pytest

from sharp.document import Details, Headline, Report, Section, Table, render_latex
from sharp.document.markdown import fence, inline, markdown_table
from sharp.document.text import (
    clean,
    clip,
    count_text,
    duration_text,
    error_text,
    number_text,
    plural,
    share_text,
)
from tests.helpers.documents.document_pages import skeleton
from tests.helpers.documents.hostile_texts import TEXTS


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_cleaned_text_can_be_encoded_and_holds_no_control_characters(text):
    shown = clean(text)
    shown.encode()
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert clean(shown) == shown


def test_plain_words_of_any_script_are_left_alone():
    text = "Größe ∂u/∂t ≤ 1\n\t\u0645\u0631\u062d\u0628\u0627 🙂"
    assert clean(text) == text


def test_direction_marks_are_shown_rather_than_obeyed():
    assert clean("a\u202eb") == "a⟨U+202E⟩b"


def test_a_clipped_text_says_how_much_is_missing():
    assert clip("abc", 3) == "abc"
    assert clip("abcdef", 2) == "ab … (4 more characters)"


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "–"),
        (0.0123, "0.0123 s"),
        (59.4, "59.4 s"),
        (100, "1 min 40 s"),
        (3599.9, "60 min 0 s"),
        (7300, "2 h 1 min"),
    ],
)
def test_durations(seconds, words):
    assert duration_text(seconds) == words


@pytest.mark.parametrize("value", [None, inf, nan])
def test_what_is_no_number_is_a_dash(value):
    assert error_text(value) == number_text(value) == "–"


def test_numbers():
    assert error_text(0.0123456) == "1.235e-02"
    assert [number_text(value) for value in (12.345, 1234.5, 99_999.0)] == ["12.3", "1230", "1e+05"]
    assert count_text(1234567) == "1,234,567"
    assert share_text(0.256) == "26%"
    assert (plural(1, "round"), plural(0, "round")) == ("1 round", "0 rounds")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_text_within_a_line_cannot_leave_it_or_begin_a_block(text):
    escaped = inline(text)
    assert "\n" not in escaped
    assert skeleton(escaped).headings == ()
    assert skeleton(f"| {escaped} | b |").tables == (3,)
    assert not re.match(r"([-+*>]|\d+[.)])(\s|$)|#|===|---|~~~|```", escaped)


@pytest.mark.parametrize("text", ["u0_batch", "h1.2.3", "1.25e-02", "(a - b)/c", "40% of it, e.g. this!"])
def test_harmless_texts_stay_readable(text):
    assert inline(text) == text


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("1. one", "1\\. one"),
        ("- a", "\\- a"),
        ("# a", "\\# a"),
        ("_a_ b_c", "\\_a\\_ b_c"),
        ("a|b", "a\\|b"),
    ],
)
def test_what_has_a_meaning_is_escaped(text, escaped):
    assert inline(text) == escaped


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_code_block_holds_its_text_and_nothing_leaves_it(text):
    block = fence(text)
    assert skeleton(block).fences == 1
    assert skeleton(block).headings == ()
    assert clean(text).rstrip("\n") in block


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_a_table_keeps_its_columns(text):
    rows = markdown_table(Table(("a", "b"), ((text, text), ("1", "2")), ("b",)))
    assert skeleton(rows).tables == (3,)
    assert len(rows.split("\n")) == 4


def test_numbers_stand_to_the_right():
    assert markdown_table(Table(("name", "n"), (("x", "1"),), ("n",))).split("\n") == [
        "| name |   n |",
        "| ---- | --: |",
        "| x    |   1 |",
    ]


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_nothing_in_a_table_is_a_command_of_latex(text):
    report = Report(text, Headline(text), (), (Section("a", "A", (Table((text,), ((text,),)),)),))
    body = render_latex(report).partition("\\midrule\n")[2].partition("\n    \\bottomrule")[0]
    assert body.endswith(" \\\\")
    assert "\n" not in body
    math = r"\$(?:[<>-]|\\\w+|[-\d.]+ \\times 10\^\{-?\d+\})\$"
    made = re.sub(rf"\\(?:[&%$#_{{}}]|(?:text\w+|dots)\{{\}})|{math}", "", body[:-3])
    assert not re.search(r"[\\&%$#_{}~^]", made)


def test_folded_tables_are_in_latex_too_with_powers_of_ten():
    table = Table(("program", "error"), (("c001_a", "1.250e-05"),), ("error",), "Errors & times")
    report = Report("Runs", Headline("Done"), (), (Section("a", "A", (Details("more", (table,)),)),))
    text = render_latex(report)
    assert "\\begin{tabular}{lr}" in text
    assert "\\caption{Errors \\& times}" in text
    assert "c001\\_a & $1.250 \\times 10^{-5}$ \\\\" in text
