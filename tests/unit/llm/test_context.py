import pytest
from hypothesis import given
from hypothesis import strategies as st

from sharp.errors import ContextExceeded
from sharp.llm.context import count_tokens, fit_to_context, strip_droppable_markers
from sharp.llm.protocol import Message


def section(name: str, lines: int = 20) -> str:
    body = f"code of {name}\n" * lines
    return f"<!-- droppable: {name} -->\n{body}<!-- end -->\n"


POOL = Message("user", f"Candidates\n{section('c001')}{section('c002')}{section('c003')}Choose.\n")
TALK = (Message("system", "be brief"), POOL, Message("assistant", "c002"), Message("user", section("h1.2.1")))


def test_tokens_are_bytes_by_three_and_a_half_and_four_a_message() -> None:
    assert count_tokens([Message("user", "x" * 35)]) == 14
    assert count_tokens([Message("user", "é" * 35)]) == 24
    assert count_tokens([Message("user", "x" * 35)], bytes_per_token=5) == 11


def test_what_fits_is_only_stripped_of_marks() -> None:
    fitted = fit_to_context(TALK, 10_000, "error")
    assert fitted.dropped == ()
    assert [message.content for message in fitted.messages] == [
        strip_droppable_markers(m.content) for m in TALK
    ]
    assert "droppable" not in str(fitted.messages)
    assert fitted.tokens == count_tokens(fitted.messages)


def test_error_policy_says_how_much_is_too_much() -> None:
    tokens = fit_to_context(TALK, 10_000, "error").tokens
    with pytest.raises(ContextExceeded, match=rf"about {tokens} tokens, but only 100 fit.*'drop-code' would"):
        fit_to_context(TALK, 100, "error")


def test_sections_make_way_one_by_one_oldest_message_first() -> None:
    full = fit_to_context(TALK, 10_000, "drop-code").tokens
    dropped = [fit_to_context(TALK, full - cut, "drop-code").dropped for cut in (0, 1, 100, 150)]
    assert dropped == [(), ("c003",), ("c003", "c002"), ("c003", "c002", "c001")]


def test_every_dropped_section_leaves_a_notice() -> None:
    fitted = fit_to_context(TALK, 180, "drop-code")
    assert fitted.dropped == ("c003", "c002", "c001")
    text = fitted.messages[1].content
    assert [f"[{name} is left out here" in text for name in ("c001", "c002", "c003")] == [True] * 3
    assert text.startswith("Candidates\n")
    assert text.endswith("Choose.\n")
    assert "code of h1.2.1" in fitted.messages[3].content


def test_kept_sections_stay() -> None:
    fitted = fit_to_context(TALK, 250, "drop-code", keep={"c002"})
    assert fitted.dropped == ("c003", "c001")
    assert "code of c002" in fitted.messages[1].content


def test_what_cannot_be_dropped_is_an_error() -> None:
    with pytest.raises(ContextExceeded, match="even without the 4 sections"):
        fit_to_context(TALK, 50, "drop-code")
    with pytest.raises(ContextExceeded, match="even without the 0 sections"):
        fit_to_context(TALK, 50, "drop-code", keep={"c001", "c002", "c003", "h1.2.1"})


def test_a_section_may_end_the_text_without_a_newline() -> None:
    open_ended = Message("user", section("c001").rstrip("\n"))
    assert fit_to_context([open_ended], 60, "drop-code").dropped == ("c001",)


@given(st.lists(st.text(max_size=200), min_size=1, max_size=4), st.integers(0, 300))
def test_never_longer_than_the_budget_and_never_cut_elsewhere(texts: list[str], budget: int) -> None:
    talk = [Message("user", text + "\n" + section(f"c{i}", 3)) for i, text in enumerate(texts)]
    try:
        fitted = fit_to_context(talk, budget, "drop-code")
    except ContextExceeded:
        return
    assert count_tokens(fitted.messages) <= budget
    for text, message in zip(texts, fitted.messages, strict=True):
        assert message.content.startswith(text)
