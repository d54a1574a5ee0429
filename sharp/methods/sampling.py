"""Repeated sampling, as CodePDE and OptiLLM's techniques do: many programs are written, all are run, the best wins."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sharp.config import SamplingParams
from sharp.errors import ReplyError
from sharp.evaluation import strategy_of
from sharp.llm import (
    ChatReply,
    Conversation,
    Message,
    explanation,
    extract_code,
    render,
)
from sharp.tournament import (
    UNSAID,
    Candidate,
    CandidateRuns,
    Execution,
    Repair,
    RunContext,
    Tournament,
    ask,
    ask_and_read,
    ask_to_repair,
    execute,
    gather_all,
    in_turn,
    refuse_all_cut,
    starting_candidates,
    system_prompt,
    with_outcome,
)
from sharp.tournament.finalize import finalize

Technique = Callable[[RunContext, str, Conversation], Awaitable[ChatReply]]
"""Answers a conversation at a place of the method, by one call or several; raises `ReplyError` where it has no answer.

Debugging goes on from this answer alone: what led to it stays with the technique, as it does in OptiLLM.
"""

_TAIL = 5000  # characters of a program's output that its author sees, as in CodePDE


@dataclass(frozen=True)
class SampledProgram:
    """A program as it was written, and the conversation that ends with it."""

    candidate: Candidate
    conversation: Conversation


async def single_call(session: RunContext, path: str, conversation: Conversation) -> ChatReply:
    """Answer by one call of the generator, as CodePDE does."""
    return await ask_generator(session, f"{path}/code", conversation)


async def ask_generator(
    session: RunContext, path: str, conversation: Conversation, sampling: SamplingParams = UNSAID, n: int = 1
) -> ChatReply:
    """Ask the generator once for the sake of a first program."""
    return await ask(session, path, session.generator, "genesis", conversation, n=n, sampling=sampling)


async def best_of_n(session: RunContext, technique: Technique) -> Tournament:
    """Write the configured number of programs with a technique, run all, and score the best on test data."""
    state, drafts = await sample(session, technique, session.config.sampled)
    state = await run_all(session, state, drafts)
    return await select_and_test(session, state)


async def sample(
    session: RunContext, technique: Technique, number: int
) -> tuple[Tournament, tuple[SampledProgram, ...]]:
    """Write programs `c001`, `c002`, …, concurrently and unexecuted; the state has them, and what held none.

    The user's own solvers come first, as if the generator had written them.
    """
    names = [f"c{index:03d}" for index in range(1, number + 1)]
    results = await gather_all(
        _write(replace(session, author=in_turn(session.config, number)), technique, name)
        for number, name in enumerate(names, start=1)
    )
    drafts = (*_given(session), *(result for result in results if isinstance(result, SampledProgram)))
    discarded = dict(result for result in results if not isinstance(result, SampledProgram))
    if not drafts:
        refuse_all_cut(discarded)
    state = Tournament(problem=session.problem.label, discarded=discarded)
    state = state.with_candidates(*(draft.candidate for draft in drafts))
    session.effects.checkpoint("genesis", state)
    return state, drafts


async def run_all(session: RunContext, state: Tournament, drafts: Sequence[SampledProgram]) -> Tournament:
    """Run all programs, each debugged in the conversation that wrote it."""
    outcomes = await gather_all(run_draft(session, "best-of-n", draft) for draft in drafts)
    for outcome in outcomes:
        state = with_outcome(session, state, outcome)
    session.effects.checkpoint("best-of-n", state)
    return state


async def run_draft(
    session: RunContext, path: str, draft: SampledProgram, repair: Repair | None = None
) -> CandidateRuns:
    """Run a program, by default debugged in the conversation that wrote it, failure after failure (as CodePDE does)."""
    so_far = draft.conversation

    async def go_on(
        path: str, versions: Sequence[Candidate], executions: Sequence[Execution]
    ) -> Candidate | None:
        nonlocal so_far
        evaluation = executions[-1].evaluation
        assert evaluation.failure is not None
        prompt = render(
            "codepde/debug",
            failure=session.feedback(evaluation),
            non_finite=evaluation.failure.kind == "non_finite",
            in_time=session.problem.time is not None,
            stdout=evaluation.stdout[-_TAIL:].strip(),
            stderr=evaluation.stderr[-_TAIL:].strip(),
            function=session.problem.interface.function,
        )
        so_far = (*so_far, Message("user", prompt))
        repaired, so_far = await ask_to_repair(session, path, draft.candidate.author, so_far, versions)
        return repaired

    return await execute(session, path, draft.candidate, repair=repair or go_on)


async def select_and_test(
    session: RunContext, state: Tournament, among: Collection[str] | None = None
) -> Tournament:
    """Choose the best program that was run, or the best of those named, and score it once on test data."""
    state = await finalize(session, state, among)
    session.effects.checkpoint("finalize", state)
    session.effects.checkpoint("done", state)
    return state


async def read_draft(
    session: RunContext,
    name: str,
    path: str,
    purpose: Literal["genesis", "search"],
    conversation: Conversation,
    reply: ChatReply,
    sampling: SamplingParams = UNSAID,
) -> SampledProgram:
    """Return the program in a reply, which is sent back once where it holds none. Raises `ReplyError` without one."""

    def read(text: str) -> Candidate:
        code = extract_code(text, session.problem.interface.function)
        return Candidate(
            id=name,
            origin=purpose,
            strategy=strategy_of(code),
            author=model,
            code=code,
            explanation=explanation(text),
        )

    model = session.generator
    found = await ask_and_read(
        session, path, model, purpose, conversation, read, given=reply, sampling=sampling
    )
    return SampledProgram(*found)


def _given(session: RunContext) -> tuple[SampledProgram, ...]:
    """Return the user's own solvers with the conversation that would have led to them, where repairs go on."""
    asked = _request(session)
    return tuple(
        SampledProgram(each, (*asked, Message("assistant", f"```python\n{each.code.strip()}\n```")))
        for each in starting_candidates(session)
    )


def _request(session: RunContext) -> Conversation:
    """Return CodePDE's request for a program."""
    prompt = render(
        "codepde/generate",
        **session.told,
        scored=session.scored,
        template=session.template.strip(),
    )
    return (system_prompt("codepde/system"), Message("user", prompt))


async def _write(session: RunContext, technique: Technique, name: str) -> SampledProgram | tuple[str, str]:
    conversation = _request(session)
    try:
        reply = await technique(session, f"genesis/{name}", conversation)
        return await read_draft(session, name, f"genesis/{name}/code", "genesis", conversation, reply)
    except ReplyError as error:
        return name, str(error)
