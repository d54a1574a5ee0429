"""What every stage needs: the configuration, the problem, the two effects, and how a model is asked."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar

from sharp.config import RunConfig, SamplingParams
from sharp.evaluation import Evaluation, EvaluationRequest, Split, feedback_text, measures_of, metric
from sharp.llm import (
    ChatReply,
    ChatRequest,
    Conversation,
    Message,
    ModelCard,
    Purpose,
    ReplyCut,
    TokenUsage,
    ask_until_valid,
    fit_to_context,
    render,
    seed_at,
)
from sharp.problems import Problem, ResourceLimits, render_description, render_template

T = TypeVar("T")
UNSAID = SamplingParams()


class Effects(Protocol):
    """What a method may do to the world.

    `path` says where in the method an effect is asked (`genesis/017`, `cycle-1/round-2/judge-1`); it is unique in a
    run and never depends on the order in which concurrent effects finish.
    """

    async def chat(self, path: str, request: ChatRequest) -> ChatReply:
        """Ask a language model once; answered from the journal if asked before."""
        ...

    async def evaluate(self, path: str, request: EvaluationRequest) -> Evaluation:
        """Run and score a candidate once; answered from the journal if asked before."""
        ...

    def checkpoint(self, barrier: str, state: Any) -> None:
        """Keep the whole tournament state as an immutable snapshot named after the barrier."""
        ...


@dataclass(frozen=True)
class RunContext:
    """One run as its stages see it.

    `data` is the label of the data set (`name@hash`), `prior` the digest of an earlier run, if one was given.
    """

    config: RunConfig
    problem: Problem
    cards: Mapping[str, ModelCard]
    data: str
    effects: Effects
    prior: str = ""

    @cached_property
    def description(self) -> str:
        """The problem as prompts describe it."""
        return render_description(self.problem)

    @cached_property
    def template(self) -> str:
        """The solver template that candidates fill in."""
        return render_template(self.problem)

    def evaluation(
        self, code: str, split: Split, *, x64: bool | None = None, abort_above: float | None = None
    ) -> EvaluationRequest:
        """Return the request that runs `code` on a split under this run's limits; the test run is timed repeatedly."""
        request = request_of(self.config, self.problem, self.data, code, split)
        return replace(request, x64=request.x64 if x64 is None else x64, abort_above=abort_above)

    def feedback(self, evaluation: Evaluation) -> str:
        """Return what a model may know of a run: permitted kinds, and the data set's error if that is revealed."""
        options, scores = self.config.feedback, evaluation.scores
        revealed = scores.data_error if scores and options.reveal_data_error else None
        return feedback_text(evaluation, options.metrics, revealed, options.weights)

    def metric(self, evaluation: Evaluation) -> float:
        """Return the number that ranks a run by the permitted kinds of feedback, smaller is better."""
        return metric(evaluation, self.config.feedback.metrics, self.config.feedback.weights)


def request_of(config: RunConfig, problem: Problem, data: str, code: str, split: Split) -> EvaluationRequest:
    """Return the request that runs `code` on a split of the data set of that label, as a run is configured."""
    options, limits = config.evaluation, problem.limits
    return EvaluationRequest(
        problem=problem.label,
        data=data,
        split=split,
        code=code,
        limits=ResourceLimits(
            options.wall_s or limits.wall_s, options.memory_mb or limits.memory_mb, options.threads
        ),
        x64=options.x64,
        repeats=options.timing_repeats if split == "test" else 1,
        shards=1 if split == "smoke" else options.shards,
        measures=() if split == "smoke" else measures_of(config.feedback.metrics),
    )


def system_prompt(name: str = "common/system") -> Message:
    """Return a system prompt as the first message of a conversation."""
    return Message("system", render(name))


async def ask(
    session: RunContext,
    path: str,
    model: str,
    purpose: Purpose,
    conversation: Conversation,
    *,
    n: int = 1,
    keep: Collection[str] = (),
    sampling: SamplingParams = UNSAID,
) -> ChatReply:
    """Ask a model once, after fitting the conversation into its context by the run's policy.

    `keep` names the candidates whose code must not make way. `sampling` is what a method prescribes for this call; it
    goes before what the configuration says of the purpose, and that before the model card.
    """
    card = session.cards[model]
    usual = card.sampling_for(purpose)
    of_role: SamplingParams = getattr(session.config.sampling, purpose)
    prescribed = sampling.max_tokens and min(sampling.max_tokens, card.longest_answer)
    max_tokens = prescribed or of_role.max_tokens or usual.max_tokens
    temperatures = (sampling.temperature, of_role.temperature, usual.temperature)
    temperature = next(value for value in temperatures if value is not None)
    fitted = fit_to_context(
        conversation,
        budget=card.context - max_tokens,
        policy=session.config.context.policy,
        keep=keep,
        bytes_per_token=card.bytes_per_token,
    )
    request = ChatRequest(
        model=model,
        purpose=purpose,
        messages=fitted.messages,
        temperature=temperature,
        max_tokens=max_tokens,
        seed=seed_at(session.config.seed, path),
        n=n,
    )
    return await session.effects.chat(path, request)


async def ask_and_read(
    session: RunContext,
    path: str,
    model: str,
    purpose: Purpose,
    conversation: Conversation,
    read: Callable[[str], T],
    *,
    given: ChatReply | None = None,
    keep: Collection[str] = (),
    sampling: SamplingParams = UNSAID,
    retries: int = 1,
) -> tuple[T, Conversation]:
    """Ask, and once more where `read` refuses the answer: the refusal's sentence is sent back to the model.

    `given` is an answer that is there already. Returns what was read and the conversation that led to it. Raises
    ReplyError where the second is refused, too; where it was cut off, the sentence says which limit to raise.
    """

    async def say(place: str, so_far: Conversation) -> ChatReply:
        return await ask(session, place, model, purpose, so_far, keep=keep, sampling=sampling)

    try:
        return await ask_until_valid(say, path, conversation, read, retries, given)
    except ReplyCut as error:
        raise ReplyCut(f"{error} To allow longer answers, raise `sampling.{purpose}.max_tokens`.") from None


def texts_apart(reply: ChatReply) -> list[ChatReply]:
    """Return the texts of a reply as replies of their own, which share its tokens evenly."""
    number = len(reply.texts)
    usage = TokenUsage(*(count // number for count in astuple(reply.usage)))
    return [
        ChatReply((text,), (reason,), usage, reply.served_by)
        for text, reason in zip(reply.texts, reply.finish_reasons, strict=True)
    ]


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all and return their results in order.

    Unlike a task group, one failure does not cancel the others: what they paid for is recorded before the first
    error is raised.
    """
    results: list[Any] = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results
