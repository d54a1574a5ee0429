import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace

import pytest

from sharp.errors import ConfigurationError, ModelRefused
from sharp.llm.backends import as_served
from sharp.llm.cards import Api, ModelCard, SamplingParams, load_card
from sharp.llm.completions import is_same_model
from sharp.llm.protocol import ChatReply, ChatRequest, Message, TokenUsage
from sharp.llm.server import OpenAIBackend, ServerOffer
from tests.helpers.models.scripted_chat_server import (
    ScriptedChatServer,
    answer,
    as_many_as_asked,
    completion,
    error,
    serving,
    streamed,
)

CARD = ModelCard(
    name="tiny",
    served_name="tiny",
    description="a test model",
    context=4096,
    sampling=SamplingParams(temperature=0.7, max_tokens=512),
)
LLAMA_CPP = {"id": "three", "meta": {"n_ctx": 4096, "n_ctx_train": 32768}}
Ask = Callable[..., "asyncio.Future[ChatReply]"]


def request(n: int = 1, content: str = "hello?") -> ChatRequest:
    messages = (Message("system", "be brief"), Message("user", content))
    return ChatRequest("tiny", "judge", messages, 0.5, 100, seed=7, n=n)


@pytest.fixture
def server() -> Iterator[ScriptedChatServer]:
    with serving() as running:
        yield running


@pytest.fixture
async def ask(server: ScriptedChatServer) -> AsyncIterator[Ask]:
    made: list[OpenAIBackend] = []

    def asking(what: ChatRequest | None = None, **changes: object) -> "asyncio.Future[ChatReply]":
        card = CARD.model_copy(update=changes)
        made.append(OpenAIBackend(card, base_url=server.url, deadline_s=5.0, backoff_s=0.01))
        return asyncio.ensure_future(made[-1].complete(what or request()))

    yield asking
    for backend in made:
        await backend.aclose()


async def test_what_is_sent(server: ScriptedChatServer, ask: Ask) -> None:
    await ask()
    assert server.bodies == [
        {
            "model": "tiny",
            "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello?"}],
            "max_tokens": 100,
            "temperature": 0.5,
            "seed": 7,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ]


async def test_parameters_a_server_does_not_take_are_left_out(server: ScriptedChatServer, ask: Ask) -> None:
    style = Api(length_parameter="max_completion_tokens", supports_seed=False, supports_temperature=False)
    await ask(api=style)
    streaming = {"stream", "stream_options"}
    assert set(server.bodies[0]) == {"model", "messages", "max_completion_tokens"} | streaming
    assert server.bodies[0]["max_completion_tokens"] == 100


async def test_marks_of_droppable_sections_are_not_sent(server: ScriptedChatServer, ask: Ask) -> None:
    await ask(request(content="<!-- droppable: c001 -->\ncode\n<!-- end -->\nchoose"))
    assert server.bodies[0]["messages"][1]["content"] == "code\nchoose"


async def test_usage_details(server: ScriptedChatServer, ask: Ask) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 300,
        "prompt_tokens_details": {"cached_tokens": 800},
        "completion_tokens_details": {"reasoning_tokens": 250},
    }
    server.script = [answer(completion("ok", usage=usage))]
    assert (await ask()).usage == TokenUsage(prompt=1000, cached=800, completion=300, reasoning=250)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "prompt_tokens_details": None}])
async def test_missing_usage_is_nothing(server: ScriptedChatServer, ask: Ask, usage: object) -> None:
    server.script = [answer(completion("ok", usage=usage))]
    assert (await ask()).usage == TokenUsage()


async def test_reasoning_is_no_part_of_the_text(server: ScriptedChatServer, ask: Ask) -> None:
    body = completion("the answer")
    body["choices"][0]["message"] |= {"reasoning_content": "hmm", "reasoning": "hmm"}
    server.script = [answer(body)]
    assert (await ask()).texts == ("the answer",)


async def test_a_reply_cut_by_the_length_limit_says_so(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("half of", finish="length"))]
    reply = await ask()
    assert (reply.texts, reply.finish_reasons) == (("half of",), ("length",))


async def test_null_content_is_an_empty_text(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion(None, finish="length"))]
    reply = await ask()
    assert (reply.texts, reply.finish_reasons) == (("",), ("length",))
    assert len(server.bodies) == 1


async def test_half_a_character_can_be_sent_back(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("cut \ud83d"))]
    reply = await ask()
    assert reply.text == "cut \ufffd"
    await ask(request(content=reply.text))
    assert server.bodies[1]["messages"][1]["content"] == "cut \ufffd"


async def test_a_filtered_answer_is_refused(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("part", finish="content_filter"))]
    with pytest.raises(ModelRefused, match="content filter"):
        await ask()


async def test_several_choices_keep_their_order(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [as_many_as_asked]
    reply = await ask(request(n=4))
    assert reply.texts == ("7/0", "7/1", "7/2", "7/3")
    assert server.bodies[0]["n"] == 4


async def test_missing_choices_are_asked_for_with_other_seeds(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("a", "b")), answer(completion("c")), as_many_as_asked]
    reply = await ask(request(n=5))
    assert reply.texts == ("a", "b", "c", "10/0", "10/1")
    assert [(body.get("n"), body["seed"]) for body in server.bodies] == [(5, 7), (3, 9), (2, 10)]
    assert reply.usage == TokenUsage(prompt=30, completion=15)


async def test_surplus_choices_are_dropped(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("a", "b", "c"))]
    reply = await ask(request(n=2))
    assert reply.texts == ("a", "b")
    assert reply.finish_reasons == ("stop", "stop")


async def test_a_server_without_n_is_asked_once_a_choice(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [as_many_as_asked]
    reply = await ask(request(n=3), api=Api(supports_n=False))
    assert reply.texts == ("7/0", "8/0", "9/0")
    assert all("n" not in body for body in server.bodies)


async def test_one_refusal_among_several_calls_is_raised_as_itself(
    server: ScriptedChatServer, ask: Ask
) -> None:
    server.script = [as_many_as_asked, answer(error("no"), 400)]
    with pytest.raises(ModelRefused, match="HTTP 400: no"):
        await ask(request(n=3), api=Api(supports_n=False))


async def test_an_answer_of_another_model_is_refused(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("ok", model="tiny-mini"))]
    with pytest.raises(ModelRefused, match="was asked for 'tiny' but answered as 'tiny-mini'"):
        await ask()
    assert len(server.bodies) == 1


async def test_a_dated_snapshot_is_the_same_model(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(completion("ok", model="tiny-2024-08-06"))]
    assert (await ask()).served_by == "tiny-2024-08-06"


@pytest.mark.parametrize(
    ("asked", "served", "same"),
    [
        ("gpt-4o", "gpt-4o", True),
        ("gpt-4o", "gpt-4o-2024-08-06", True),
        ("sonnet", "sonnet-20250219", True),
        ("gpt-4o", "", True),
        ("gpt-4o", "gpt-4o-mini", False),
        ("gpt-4o", "gpt-4o-mini-2024-07-18", False),
        ("gpt-4o-2024-08-06", "gpt-4o", False),
        ("DeepSeek-R1", "DeepSeek-R1-0528", False),
    ],
)
def test_same_model(asked: str, served: str, same: bool) -> None:
    assert is_same_model(asked, served) is same


async def test_without_served_name_the_only_model_is_asked(server: ScriptedChatServer, ask: Ask) -> None:
    server.models = ["found"]
    server.script = [answer(completion("ok", model="found"))]
    assert (await ask(served_name=None)).served_by == "found"
    assert server.bodies[0]["model"] == "found"


async def test_without_served_name_several_models_are_a_question(
    server: ScriptedChatServer, ask: Ask
) -> None:
    server.models = ["one", "two"]
    with pytest.raises(ModelRefused, match="offers 2 models; name one as served_name: one, two"):
        await ask(served_name=None)
    assert server.bodies == []


async def test_models_are_listed(server: ScriptedChatServer) -> None:
    server.models = ["one", {"id": "two", "max_model_len": 8192}, LLAMA_CPP]
    backend = OpenAIBackend(CARD, base_url=f"{server.url}/")
    listed = await backend.models()
    await backend.aclose()
    assert listed == {"one": None, "two": 8192, "three": 4096}


async def test_what_comes_as_a_stream_is_put_together(server: ScriptedChatServer, ask: Ask) -> None:
    pieces = [
        {"choices": [{"index": 1, "delta": {"role": "assistant", "content": "se"}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hmm, "}}]},
        {"choices": [{"index": 0, "delta": {"reasoning_content": "yes"}}]},
        {"choices": [{"index": 0, "delta": {"content": "first"}, "finish_reason": "stop"}], "model": "tiny"},
        {"choices": [{"index": 1, "delta": {"content": "cond"}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 18}},
    ]
    server.script = [streamed(*pieces)]
    reply = await ask(request(n=2))
    assert reply.texts == ("first", "second")
    assert reply.finish_reasons == ("stop", "length")
    assert reply.usage == TokenUsage(7, 0, 18, 8)  # 8 of 19 letters are reasoning
    assert reply.served_by == "tiny"


async def test_a_stream_that_breaks_off_is_asked_for_again(server: ScriptedChatServer, ask: Ask) -> None:
    began = {"choices": [{"index": 0, "delta": {"content": "so"}}]}
    server.script = [
        streamed(began),
        streamed(began, {"error": {"message": "engine died"}}),
        answer(completion("whole")),
    ]
    assert (await ask()).text == "whole"
    assert len(server.bodies) == 3


async def test_reasoning_within_the_text_is_counted(server: ScriptedChatServer, ask: Ask) -> None:
    text = "<think>" + "a" * 85 + "</think>12345678"  # 108 letters, of which 8 are the answer
    usage = {"prompt_tokens": 9, "completion_tokens": 54}
    server.script = [answer(completion(text, usage=usage))]
    assert (await ask()).usage.reasoning == 50


async def test_a_server_that_does_not_stream_is_asked_without(server: ScriptedChatServer, ask: Ask) -> None:
    server.script = [answer(error("unknown field: stream_options"), 400), answer(completion("whole"))]
    assert (await ask()).text == "whole"
    assert [body.get("stream") for body in server.bodies] == [True, None]


async def test_a_schema_is_sent_and_left_out_once_it_is_refused(server: ScriptedChatServer) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}}
    asked = replace(request(), schema=schema)
    server.script = [
        answer(completion('{"ok": true}')),
        answer(error("Grammar error: unimplemented keys"), 400),
        answer(completion("anything")),
    ]
    backend = OpenAIBackend(CARD, base_url=server.url, backoff_s=0.01)
    texts = [(await backend.complete(asked)).text for _ in range(3)]
    await backend.aclose()
    assert texts == ['{"ok": true}', "anything", "anything"]
    sent = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    assert [body.get("response_format") for body in server.bodies] == [sent, sent, None, None]


@pytest.mark.parametrize("refused", [False, True])
async def test_what_a_server_offers(server: ScriptedChatServer, refused: bool) -> None:
    server.models = [{**LLAMA_CPP, "id": "tiny"}]
    ok = answer(completion('{"ok": true}'))
    server.script = [answer(error("response_format is not supported"), 400), ok] if refused else [ok]
    backend = OpenAIBackend(CARD, base_url=server.url, backoff_s=0.01)
    offer = await backend.offer()
    await backend.aclose()
    assert offer == ServerOffer(4096, structured_output=not refused)
    assert server.bodies[0]["max_tokens"] == 16


def test_a_key_that_no_header_can_carry_is_refused_unseen() -> None:
    with pytest.raises(ConfigurationError, match="cannot carry") as caught:
        OpenAIBackend(CARD, base_url="http://127.0.0.1:1/v1", api_key="gehéim")
    assert "geh" not in str(caught.value)


@pytest.mark.parametrize("served_name", [None, "served"])
def test_a_server_that_is_not_there_yet_leaves_the_card_as_it_is(served_name: str | None) -> None:
    # Port 9 of loopback refuses connections.
    card = load_card("local").model_copy(
        update={"base_url": "http://127.0.0.1:9/v1", "served_name": served_name}
    )
    assert as_served(card, ask_model=True) == card
    assert as_served(card, ask_model=False) == card
