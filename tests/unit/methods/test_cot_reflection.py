from __future__ import annotations

from typing import Any

import pytest

from sharp.methods.cot_reflection import output_of
from tests.helpers.methods.played import played, sampling
from tests.helpers.models.scripted import Cut, fenced, program

THINKING = "<thinking>\nUpwind? <reflection>No, too diffusive.</reflection>\n</thinking>\n"
ONE: dict[str, Any] = {"genesis": {"candidates": 1}, "synthesis": {"repairs": 1}}


def thought(code: str) -> str:
    return f"{THINKING}<output>\n{fenced(code)}</output>\n"


async def test_one_call_a_program_with_the_published_sampling() -> None:
    state, effects = await played(
        "cot-reflection",
        {r"/code$": lambda path, _: thought(program(0.1 * int(path[9:12])))},
        genesis={"candidates": 2},
        models={"generator": "local"},
    )
    assert list(effects.chats) == ["genesis/c001/code", "genesis/c002/code"]
    for request in effects.chats.values():
        assert sampling(request) == (0.6, 4096, 1)
        assert (request.model, request.purpose) == ("local", "genesis")
    assert state.best == "c001"
    assert len(effects.validations()) == 2


async def test_the_instruction_is_added_to_the_system_message_and_the_question_is_codepdes() -> None:
    _, effects = await played("cot-reflection", {r"/code$": thought(program(0.1))}, **ONE)
    _, plain = await played("codepde", {r"/code$": fenced(program(0.1))}, **ONE)
    system, question = effects.chats["genesis/c001/code"].messages
    usual, usual_question = plain.chats["genesis/c001/code"].messages
    assert question == usual_question
    assert system.role == "system"
    assert system.content.startswith(usual.content.strip())
    assert all(f"<{tag}>" in system.content for tag in ("thinking", "reflection", "output"))


async def test_temperature_and_length_are_options() -> None:
    options = {"cot_reflection": {"temperature": 0.2, "max_tokens": 999}, **ONE}
    _, effects = await played("cot-reflection", {r"/code$": thought(program(0.1))}, **options)
    assert sampling(effects.chats["genesis/c001/code"]) == (0.2, 999, 1)


async def test_the_program_is_that_of_the_output_even_where_the_thinking_has_a_longer_one() -> None:
    long = fenced(program(0.5, "a very long name of a program that was thought of first"))
    reply = f"<thinking>\n{long}\n</thinking>\n<output>\n{fenced(program(0.1))}</output>"
    state, _ = await played("cot-reflection", {r"/code(/retry-1)?$": reply}, **ONE)
    assert state.candidates["c001"].code == program(0.1)
    assert state.candidates["c001"].explanation == "A plan."


async def test_a_reply_that_was_cut_off_inside_its_program_is_discarded() -> None:
    reply = Cut(thought(program(0.1)).removesuffix("```\n</output>\n"))
    state, _ = await played("cot-reflection", {r"/code(/retry-1)?$": reply}, **ONE)
    assert not state.candidates
    assert "cut off at the limit of 10 tokens" in state.discarded["c001"]


async def test_debugging_is_codepdes_and_goes_on_from_the_output() -> None:
    rules = {
        r"/code$": thought(program(0.1, crash="boom")),
        r"debug-1$": fenced(program(0.05)),
    }
    state, effects = await played("cot-reflection", rules, **ONE)
    usual, _, answer, complaint = effects.chats["best-of-n/c001/debug-1"].messages
    assert "<output>" not in usual.content
    assert answer.content == fenced(program(0.1, crash="boom")).strip()
    assert "boom" in complaint.content
    assert state.best == "c001d1"


@pytest.mark.parametrize(
    ("reply", "output"),
    [
        (f"{THINKING}<output>\nanswer\n</output>\nBye.", "answer"),
        (f"{THINKING}<output>\nanswer", "answer"),
        ("an answer\nwithout tags", "an answer\nwithout tags"),
        ("<thinking>It goes into <output> later.</thinking>\n<output>answer</output>", "answer"),
        ("<thinking>Never closed. <output>answer</output>", "answer"),
        ("<thinking>So <output>answer</output>.</thinking>", "answer"),
        ("<output></output>", ""),
    ],
)
def test_the_output_is_found(reply: str, output: str) -> None:
    assert output_of(reply) == output
