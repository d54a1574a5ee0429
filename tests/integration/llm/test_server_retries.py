import asyncio
import logging
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from sharp.errors import ContextExceeded, ModelRefused, ModelUnavailable
from sharp.llm.cards import ModelCard, SamplingParams
from sharp.llm.completions import read_retry_after
from sharp.llm.protocol import ChatRequest, Message
from sharp.llm.server import OpenAIBackend
from tests.helpers.models.scripted_chat_server import (
    ScriptedChatServer,
    answer,
    completion,
    error,
    hang_up,
    serving,
    slow,
    streamed,
    truncated,
)

KEY = "sk-very-secret-0123456789"
REQUEST = ChatRequest("tiny", "judge", (Message("user", "hello?"),), 0.5, 100, seed=7)
BackendMaker = Callable[..., OpenAIBackend]


@pytest.fixture
def server() -> Iterator[ScriptedChatServer]:
    with serving() as running:
        yield running


def card(**more: object) -> ModelCard:
    basis = {
        "name": "tiny",
        "served_name": "tiny",
        "description": "a test model",
        "context": 4096,
        "sampling": SamplingParams(temperature=0.7, max_tokens=512),
    }
    return ModelCard.model_validate({**basis, **more})


@pytest.fixture
async def make(server: ScriptedChatServer) -> AsyncIterator[BackendMaker]:
    made: list[OpenAIBackend] = []

    def maker(model: ModelCard | None = None, **options: object) -> OpenAIBackend:
        defaults = {"base_url": server.url, "deadline_s": 10.0, "attempt_timeout_s": 5.0, "backoff_s": 0.01}
        made.append(OpenAIBackend(model or card(), **{**defaults, **options}))  # type: ignore[arg-type]
        return made[-1]

    yield maker
    for backend in made:
        await backend.aclose()


PASSING_FAILURES = {
    "500": answer(error("internal"), 500),
    "502-html": answer(b"<html>bad gateway</html>", 502, Content_Type="text/html"),
    "503": answer(error("loading"), 503),
    "408": answer(error("too slow"), 408),
    "409": answer(error("conflict"), 409),
    "429": answer(error("too many"), 429),
    "truncated-body": truncated,
    "half-json": answer(b'{"choices": [{"message"'),
    "no-json": answer(b"<html>log in here</html>", Content_Type="text/html"),
    "json-as-text": answer(b'"hello"'),
    "no-choices-key": answer({"object": "chat.completion"}),
    "error-with-200": answer(error("upstream failed")),
    "empty-choices": answer(completion()),
    "broken-choice": answer({"choices": [{"index": 0}], "model": "tiny"}),
    "hung-up": hang_up,
}


@pytest.mark.parametrize("failure", PASSING_FAILURES.values(), ids=PASSING_FAILURES.keys())
async def test_passing_failures_are_repeated(
    server: ScriptedChatServer, make: BackendMaker, failure: object
) -> None:
    server.script = [failure, failure, answer(completion("at last"))]  # type: ignore[list-item]
    reply = await make().complete(REQUEST)
    assert reply.text == "at last"
    assert len(server.bodies) == 3
    assert server.bodies[0] == server.bodies[1] == server.bodies[2]


async def test_json_under_another_content_type_is_read(
    server: ScriptedChatServer, make: BackendMaker
) -> None:
    server.script = [answer(completion("fine"), Content_Type="text/plain")]
    assert (await make().complete(REQUEST)).text == "fine"
    assert len(server.bodies) == 1


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
async def test_final_refusals_are_asked_once(
    server: ScriptedChatServer, make: BackendMaker, status: int
) -> None:
    server.script = [answer(error("temperature must not be negative"), status)]
    with pytest.raises(ModelRefused, match=rf"HTTP {status}: temperature must not be negative"):
        await make().complete(REQUEST)
    assert len(server.bodies) == 1


async def test_exhausted_quota_is_not_repeated(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [answer(error("you exceeded your quota", "insufficient_quota"), 429)]
    with pytest.raises(ModelRefused, match="exceeded your quota"):
        await make().complete(REQUEST)
    assert len(server.bodies) == 1


async def test_retry_after_seconds_are_waited(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [answer(error("busy"), 429, Retry_After="1"), answer(completion("ok"))]
    start = time.monotonic()
    await make().complete(REQUEST)
    assert time.monotonic() - start >= 1.0


async def test_retry_after_beyond_the_deadline_ends_at_once(
    server: ScriptedChatServer, make: BackendMaker
) -> None:
    server.script = [answer(error("come back tomorrow"), 429, Retry_After="86400")]
    start = time.monotonic()
    with pytest.raises(ModelUnavailable, match="1 failed attempts: HTTP 429: come back tomorrow"):
        await make().complete(REQUEST)
    assert time.monotonic() - start < 10.0


def test_retry_after_dates() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    waited = read_retry_after({"retry-after": soon})
    assert waited is not None
    assert 25 < waited <= 30
    past = format_datetime(datetime.now(UTC) - timedelta(days=1), usegmt=True)
    assert read_retry_after({"retry-after": past}) == 0
    assert read_retry_after({"retry-after": "soon"}) is None
    assert read_retry_after({}) is None


async def test_a_slow_attempt_is_cut_and_repeated(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [slow(60), answer(completion("quick"))]
    assert (await make(attempt_timeout_s=1.0).complete(REQUEST)).text == "quick"
    assert len(server.bodies) == 2


async def test_the_clock_watches_for_silence_not_for_the_whole(
    server: ScriptedChatServer, make: BackendMaker
) -> None:
    pieces = [{"choices": [{"index": 0, "delta": {"content": f"{number} "}}]} for number in range(8)]
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    server.script = [streamed(*pieces, end, pause_s=0.1)]
    assert (await make(attempt_timeout_s=0.5).complete(REQUEST)).text == "0 1 2 3 4 5 6 7 "
    assert len(server.bodies) == 1


async def test_a_stream_that_falls_silent_is_asked_for_again(
    server: ScriptedChatServer, make: BackendMaker
) -> None:
    piece = {"choices": [{"index": 0, "delta": {"content": "so"}}]}
    server.script = [streamed(piece, piece, pause_s=1.0), answer(completion("quick"))]
    assert (await make(attempt_timeout_s=0.3).complete(REQUEST)).text == "quick"


async def test_the_deadline_bounds_everything(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [answer(error("overloaded"), 503)]
    start = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"no usable answer within 1 s.*HTTP 503: overloaded"):
        await make(deadline_s=1.0).complete(REQUEST)
    assert time.monotonic() - start < 10.0
    assert len(server.bodies) > 2


async def test_the_deadline_cuts_an_attempt(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [slow(60)]
    start = time.monotonic()
    with pytest.raises(ModelUnavailable, match=r"within 0\.5 s$"):
        await make(deadline_s=0.5, attempt_timeout_s=50).complete(REQUEST)
    assert time.monotonic() - start < 10.0


async def test_nobody_listens(make: BackendMaker) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}/v1"
    with pytest.raises(ModelUnavailable, match="the connection failed") as caught:
        await make(base_url=url, deadline_s=1.0).complete(REQUEST)
    assert url in str(caught.value)


async def test_cancelling_is_not_a_failure(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [slow(60)]
    call = asyncio.ensure_future(make().complete(REQUEST))
    assert await asyncio.to_thread(server.asked.wait, 10)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(server.bodies) == 1


async def test_tokens_of_failed_attempts_are_counted(server: ScriptedChatServer, make: BackendMaker) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 40}
    server.script = [
        answer(completion(usage=usage)),
        answer(error("crashed while generating", usage=usage), 500),
        answer(completion("ok")),
    ]
    reply = await make().complete(REQUEST)
    assert (reply.usage.prompt, reply.usage.completion) == (210, 85)


@pytest.mark.parametrize(
    "body",
    [
        error("prompt too long", "context_length_exceeded"),
        error("This model's maximum context length is 4096 tokens. However, you requested 5000."),
        {"object": "error", "message": "the request exceeds the available context size", "code": 400},
        {"detail": "prompt is too long: 5000 > 4096"},
    ],
)
async def test_too_long_a_conversation(
    server: ScriptedChatServer, make: BackendMaker, body: dict[str, object]
) -> None:
    server.script = [answer(body, 400)]
    with pytest.raises(ContextExceeded, match="does not fit the context of model 'tiny'"):
        await make().complete(REQUEST)
    assert len(server.bodies) == 1


async def test_unknown_model_names_the_known_ones(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.models = ["llama", "qwen"]
    server.script = [answer(error("The model `tiny` does not exist.", "model_not_found"), 404)]
    with pytest.raises(ModelRefused, match=r"does not know 'tiny'.*it offers: llama, qwen"):
        await make().complete(REQUEST)


async def test_wrong_address_is_suspected_where_no_models_are_listed(
    server: ScriptedChatServer, make: BackendMaker
) -> None:
    server.models = None
    server.script = [answer(error("not found"), 404)]
    with pytest.raises(ModelRefused, match="is base_url right"):
        await make().complete(REQUEST)


@pytest.mark.parametrize("status", [401, 403])
async def test_a_refused_key_is_named_but_not_shown(
    server: ScriptedChatServer, make: BackendMaker, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.script = [answer(error(f"Incorrect API key provided: {KEY}."), status)]
    backend = make(card(api_key_env="TINY_KEY"), api_key=KEY)
    with pytest.raises(ModelRefused, match="the key from environment variable TINY_KEY") as caught:
        await backend.complete(REQUEST)
    assert server.keys == [f"Bearer {KEY}"]
    assert "provided: [key]." in str(caught.value)
    assert caught.value.__suppress_context__
    for text in (str(caught.value), repr(backend), repr(vars(backend.card)), caplog.text):
        assert KEY not in text


async def test_the_key_is_not_in_warnings(
    server: ScriptedChatServer, make: BackendMaker, caplog: pytest.LogCaptureFixture
) -> None:
    server.script = [answer(error(f"cannot verify {KEY}"), 500), answer(completion("ok"))]
    await make(api_key=f"{KEY}\n").complete(REQUEST)
    assert "HTTP 500: cannot verify [key]; next attempt in" in caplog.text
    assert KEY not in caplog.text
    assert server.keys[0] == f"Bearer {KEY}"


async def test_a_foreign_key_is_not_sent_along(
    server: ScriptedChatServer, make: BackendMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    await make().complete(REQUEST)
    assert server.keys == ["Bearer none"]


async def test_a_missing_key_is_said(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [answer(error("Unauthorized"), 401)]
    with pytest.raises(
        ModelRefused, match="without a key; name the key's environment variable in api_key_env"
    ):
        await make().complete(REQUEST)


async def test_calls_in_flight_are_bounded(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [slow(0.15)]
    backend = make(max_concurrency=3)
    await asyncio.gather(*(backend.complete(REQUEST) for _ in range(12)))
    assert len(server.bodies) == 12
    assert server.most_in_flight == 3


async def test_pauses_leave_global_randomness_alone(server: ScriptedChatServer, make: BackendMaker) -> None:
    server.script = [answer(error("again"), 500)] * 3 + [answer(completion("ok"))]
    random.seed(1)
    before = random.getstate()
    await make().complete(REQUEST)
    assert random.getstate() == before
