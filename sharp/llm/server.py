"""Chat with a server that speaks the OpenAI-compatible API: vLLM, llama.cpp, or a hosted service.

Answers are streamed, so that a server that is at work can be told from one that is silent; a server that does not
stream answers at once. One request has a deadline. Within it, attempts that failed for passing reasons (no connection,
silence, HTTP 408, 409, 425, 429 and 5xx, an answer that cannot be read) are repeated after a random delay that grows
exponentially; `Retry-After` is honoured. What repeating cannot cure ends the request at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import inf
from operator import add
from random import Random
from typing import TYPE_CHECKING, Any, TypeVar

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from sharp.errors import ConfigurationError, ContextExceeded, ModelError, ModelRefused, ModelUnavailable
from sharp.llm.cards import ModelCard, checked_url
from sharp.llm.completions import (
    AnswerError,
    is_same_model,
    read_completion,
    read_error,
    read_models,
    read_retry_after,
    read_stream,
)
from sharp.llm.context import strip_droppable_markers
from sharp.llm.protocol import ChatReply, ChatRequest, Message, TokenUsage

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

T = TypeVar("T")
log = logging.getLogger(__name__)

RETRIED_STATUS = frozenset({408, 409, 425, 429})
LONGEST_PAUSE_S = 60.0

NO_KEY = "none"


class _AttemptError(Exception):
    """A failure that another attempt may cure, with the wait the server asks for and the tokens it spent."""

    def __init__(self, sentence: str, usage: TokenUsage, pause_s: float = 0.0) -> None:
        super().__init__(sentence)
        self.usage = usage
        self.pause_s = pause_s


class _BadRequest(ModelRefused):
    """The server takes the request's form or one of its parameters for wrong."""


class _NotFound(ModelRefused):
    """The server knows no such model (or no such address)."""


@dataclass(frozen=True)
class ServerOffer:
    """What a server offers for a model: its context in tokens (None where it does not tell), answers by a schema."""

    context: int | None
    structured_output: bool


class OpenAIBackend:
    """A model behind an OpenAI-compatible server. One object serves one event loop.

    `deadline_s` bounds one call with all its attempts and pauses, `attempt_timeout_s` the silence of the server within
    an attempt. What a server refuses and can do without, streams and schemas, it is asked for once. At most
    `max_concurrency` calls are in flight; others wait before their deadline starts. The first pause is drawn
    from (0, `backoff_s`), each further one from twice the range of the last, up to a minute. `attempts` bounds their
    number; `direct` goes past any proxy that the environment names.
    """

    def __init__(
        self,
        card: ModelCard,
        *,
        base_url: str,
        api_key: str | None = None,
        deadline_s: float = 1800.0,
        attempt_timeout_s: float = 600.0,
        max_concurrency: int = 16,
        backoff_s: float = 1.0,
        attempts: float = inf,
        direct: bool = False,
    ) -> None:
        self.card = card
        self.base_url = checked_url(base_url)
        self.deadline_s = deadline_s
        self.attempt_timeout_s = attempt_timeout_s
        self.backoff_s = backoff_s
        self._attempts, self._direct = attempts, direct
        # Servers without authentication ignore the key; given none, the client library would send OPENAI_API_KEY.
        self._key = (api_key or "").strip() or NO_KEY
        if not (self._key.isascii() and self._key.isprintable()):
            raise ConfigurationError("the API key has characters that an HTTP header cannot carry")
        self._slots = asyncio.Semaphore(max_concurrency)
        self._served_name = card.served_name
        self._refused: set[str] = set()
        # Its own generator: pauses must not disturb random numbers that methods draw.
        self._random = Random()

    def __repr__(self) -> str:
        return f"OpenAIBackend({self.card.name!r}, base_url={self.base_url!r})"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer one request; asks again where the server returned fewer choices than `n`.

        Raises ModelUnavailable past the deadline, ModelRefused for what no repetition cures, ContextExceeded
        for a conversation that is too long.
        """
        reply = await self._draw(request, 0)
        while len(reply.texts) < request.n:
            reply += await self._draw(request, len(reply.texts))
        return replace(
            reply, texts=reply.texts[: request.n], finish_reasons=reply.finish_reasons[: request.n]
        )

    async def models(self) -> dict[str, int | None]:
        """Return the models that the server lists, each with its context in tokens, None where it does not tell.

        One attempt. Raises ModelUnavailable or ModelRefused.
        """
        try:
            return read_models(await self._send(self._list))
        except (_AttemptError, AnswerError) as failure:
            raise ModelUnavailable(f"{self._where} does not list its models: {failure}") from None

    async def _list(self, _clock: asyncio.Timeout) -> str:
        return str((await self._client.models.with_raw_response.list()).http_response.text)

    async def offer(self) -> ServerOffer:
        """Ask what the server offers for the model, with one request of a few tokens. Raises ModelError."""
        models: dict[str, int | None] = {}
        with suppress(ModelUnavailable, ModelRefused):
            models = await self.models()
        question = (Message("user", 'Answer with the JSON object {"ok": true}.'),)
        schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
        await self.complete(ChatRequest(self.card.name, "analysis", question, 0.0, 16, 0, schema=schema))
        # By now a card without a name has that of the server's only model.
        return ServerOffer(models.get(self._served_name or ""), "response_format" not in self._refused)

    async def aclose(self) -> None:
        """Close the connections."""
        if "_client" in self.__dict__:
            await self._client.close()

    @cached_property
    def _client(self) -> AsyncOpenAI:
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient

        return AsyncOpenAI(
            api_key=self._key,
            base_url=self.base_url,
            timeout=self.deadline_s,
            max_retries=0,
            http_client=DefaultAsyncHttpxClient(trust_env=False) if self._direct else None,
        )

    @property
    def _where(self) -> str:
        return f"the server of model {self.card.name!r} at {self.base_url}"

    async def _draw(self, request: ChatRequest, have: int) -> ChatReply:
        """Ask for the missing choices: in one call, or in one call each where the server takes no `n`."""
        missing = request.n - have
        if missing == 1 or self.card.api.supports_n:
            return await self._ask(self._body(request, have, missing))
        tasks = [asyncio.ensure_future(self._ask(self._body(request, have + i, 1))) for i in range(missing)]
        try:
            return reduce(add, await asyncio.gather(*tasks))
        finally:  # the first failure ends the others, and is raised as itself
            for task in tasks:
                task.cancel()

    def _body(self, request: ChatRequest, have: int, n: int) -> dict[str, Any]:
        api = self.card.api
        options: dict[str, Any] = {api.length_parameter: request.max_tokens}
        if api.supports_temperature:
            options["temperature"] = request.temperature
        if api.supports_seed:
            # A server with the same seed would repeat the choices that are here already.
            options["seed"] = request.seed + have
        if api.supports_n and n > 1:
            options["n"] = n
        if request.schema is not None:
            # Not `strict`: OpenAI then refuses bounds of strings, and vLLM and llama.cpp hold to a schema in any case.
            form = {"name": "answer", "schema": request.schema}
            options["response_format"] = {"type": "json_schema", "json_schema": form}
        messages = [{"role": m.role, "content": strip_droppable_markers(m.content)} for m in request.messages]
        # Older client libraries do not know every option by name; `extra_body` takes them all.
        return {"messages": messages, "extra_body": options}

    async def _ask(self, body: dict[str, Any]) -> ChatReply:
        """Return one call's answer within the deadline, the tokens of failed attempts included."""
        failures: list[_AttemptError] = []

        async def attempt() -> ChatReply:
            try:
                return await self._attempt(body)
            except _AttemptError as failure:
                failures.append(failure)
                raise

        async def pause(seconds: float) -> None:
            if len(failures) >= self._attempts or loop.time() + seconds > deadline:
                raise TimeoutError
            log.warning("%s: %s; next attempt in %.1f s", self._where, failures[-1], seconds)
            await asyncio.sleep(seconds)

        async with self._slots:
            loop = asyncio.get_running_loop()
            deadline = loop.time() + self.deadline_s
            retrying = AsyncRetrying(
                retry=retry_if_exception_type(_AttemptError), wait=self._delay, sleep=pause
            )
            try:
                async with asyncio.timeout_at(deadline):
                    reply: ChatReply = await retrying(attempt)
            except TimeoutError:
                last = f"; the last of {len(failures)} failed attempts: {failures[-1]}" if failures else ""
                limit = "" if len(failures) >= self._attempts else f" within {self.deadline_s:g} s"
                raise ModelUnavailable(f"{self._where} gave no usable answer{limit}{last}") from None
        spent = sum((failure.usage for failure in failures), TokenUsage())
        return replace(reply, usage=reply.usage + spent)

    def _delay(self, state: RetryCallState) -> float:
        """Exponential back-off with full jitter, on top of what the server asks for."""
        failure = state.outcome.exception() if state.outcome else None
        asked = failure.pause_s if isinstance(failure, _AttemptError) else 0.0
        longest = min(LONGEST_PAUSE_S, self.backoff_s * 2.0 ** min(state.attempt_number - 1, 30))
        return asked + self._random.uniform(0, longest)

    async def _attempt(self, body: dict[str, Any]) -> ChatReply:
        asked = self._served_name or await self._only_model()
        try:
            reply = await self._answer(asked, body)
        except _NotFound as error:
            offer = "it does not list its models either: is base_url right? It usually ends in /v1"
            with suppress(ModelError):
                offer = f"it offers: {', '.join(await self.models())}"
            raise ModelRefused(f"{error}; {offer}") from None
        except AnswerError as error:
            raise _AttemptError(self._clean(str(error)), error.usage) from None
        if not is_same_model(asked, reply.served_by):
            raise ModelRefused(f"{self._where} was asked for {asked!r} but answered as {reply.served_by!r}")
        return reply

    async def _answer(self, asked: str, body: dict[str, Any]) -> ChatReply:
        """Return the answer to one request, without what the server has refused before or refuses now."""
        create = self._client.chat.completions.with_streaming_response.create
        options = {key: value for key, value in body["extra_body"].items() if key not in self._refused}
        stream = (
            {} if "stream" in self._refused else {"stream": True, "stream_options": {"include_usage": True}}
        )

        async def read(clock: asyncio.Timeout) -> ChatReply:
            async with create(
                model=asked, messages=body["messages"], extra_body={**options, **stream}
            ) as response:
                if "text/event-stream" not in response.headers.get("content-type", ""):
                    return read_completion(await response.text())
                lines = []
                async for line in response.iter_lines():
                    clock.reschedule(asyncio.get_running_loop().time() + self.attempt_timeout_s)
                    lines.append(line)
            events = (line.removeprefix("data:").strip() for line in lines if line.startswith("data:"))
            return read_stream(event for event in events if event != "[DONE]")

        try:
            return await self._send(read)
        except _BadRequest as refusal:
            option = "response_format" if "response_format" in options else "stream"
            if option == "stream" and not (stream and "stream" in str(refusal)):
                raise
            log.warning("%s does not take `%s`, and is asked without it", self._where, option)
            self._refused.add(option)
            return await self._answer(asked, body)

    async def _only_model(self) -> str:
        try:
            names = [*await self.models()]
        except ModelUnavailable as error:
            raise _AttemptError(str(error), TokenUsage()) from None
        if len(names) != 1:
            raise ModelRefused(
                f"{self._where} offers {len(names)} models; name one as served_name: {', '.join(names)}"
            )
        self._served_name = names[0]
        return names[0]

    async def _send(self, exchange: Callable[[asyncio.Timeout], Awaitable[T]]) -> T:
        """Make one HTTP exchange, which sets the clock back at every sign of life.

        Every failure is translated into ours, without the key.
        """
        import openai

        try:
            async with asyncio.timeout(self.attempt_timeout_s) as clock:
                return await exchange(clock)
        except (TimeoutError, openai.APITimeoutError):
            raise _AttemptError(f"no sign of life for {self.attempt_timeout_s:g} s", TokenUsage()) from None
        except openai.APIStatusError as error:
            raise self._meaning(error) from None
        except (ModelError, AnswerError):
            raise
        except Exception as error:  # noqa: BLE001  within a stream the client lets its transport's errors through
            cause = self._clean(str(error.__cause__ or error))
            raise _AttemptError(f"the connection failed ({cause})", TokenUsage()) from None

    def _meaning(self, response: APIStatusError) -> Exception:
        """Return what an error status means: another attempt, or the end and why."""
        status, error = response.status_code, read_error(response.response.text)
        sentence = f"HTTP {status}: {self._clean(error.sentence)}"
        if error.code == "insufficient_quota":
            return ModelRefused(f"{self._where}: {sentence}")
        if status in RETRIED_STATUS or status >= 500:
            return _AttemptError(sentence, error.usage, read_retry_after(response.response.headers) or 0.0)
        if error.is_context:
            return ContextExceeded(
                f"the conversation does not fit the context of model {self.card.name!r} ({sentence})"
            )
        if status in (401, 403):
            key = f"the key from environment variable {self.card.api_key_env or '(given by the caller)'}"
            if self._key == NO_KEY:
                key = "a request without a key; name the key's environment variable in api_key_env"
            return ModelRefused(f"{self._where} did not accept {key} ({sentence})")
        if status == 404 or error.code == "model_not_found":
            return _NotFound(
                f"{self._where} does not know {self._served_name or 'this address'!r} ({sentence})"
            )
        kind = _BadRequest if status in (400, 422) else ModelRefused
        return kind(f"{self._where} refused the request ({sentence})")

    def _clean(self, text: str) -> str:
        return text if self._key == NO_KEY else text.replace(self._key, "[key]")
