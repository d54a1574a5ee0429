"""What searches without judges share: a program is written after others, run, and entered into the trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

from sharp.config import SamplingParams
from sharp.errors import ReplyError
from sharp.llm import Conversation, Message, changed_share, render
from sharp.methods.sampling import read_draft, run_draft
from sharp.tournament import (
    Candidate,
    CandidateRuns,
    Repair,
    RunContext,
    SearchAction,
    SearchStep,
    Tournament,
    ask,
    request_of,
    system_prompt,
    with_outcome,
)

CHECKPOINT_STEPS = 8


@dataclass(frozen=True)
class SearchTask:
    """A step that is still to be done: the conversation that asks for a program, and the programs that it shows.

    `author` is the model that writes it. `base` is the best of those shown, or the only one. `temperature` is what the
    method prescribes, None if nothing.
    """

    number: int
    move: SearchAction
    author: str
    conversation: Conversation
    shown: tuple[str, ...] = ()
    base: Candidate | None = None
    note: str = ""
    temperature: float | None = None

    @property
    def name(self) -> str:
        """The id of the program that the step writes."""
        return f"s{self.number:03d}"


@dataclass(frozen=True)
class SearchResult:
    """What came of a step: the program that was written and its runs, or the `complaint` that the reply holds none."""

    task: SearchTask
    candidate: Candidate | None = None
    outcome: CandidateRuns | None = None
    complaint: str = ""


async def execute_step(session: RunContext, task: SearchTask, repair: Repair | None = None) -> SearchResult:
    """Ask for the program of a step and run it, by default debugged in the conversation that wrote it."""
    session, base = replace(session, author=task.author), task.base
    path, sampling = f"search/{task.name}/code", SamplingParams(temperature=task.temperature)
    keep = () if base is None else (base.id,)
    reply = await ask(session, path, task.author, "search", task.conversation, keep=keep, sampling=sampling)
    try:
        draft = await read_draft(session, task.name, path, "search", task.conversation, reply, sampling)
    except ReplyError as error:
        return SearchResult(task, complaint=str(error))
    if base is not None:
        # Parents are the base first, then the others that were shown, each once.
        parents, share = dict.fromkeys((base.id, *task.shown)), changed_share(base.code, draft.candidate.code)
        draft = replace(
            draft, candidate=replace(draft.candidate, parents=tuple(parents), changed_share=share)
        )
    return SearchResult(task, draft.candidate, await run_draft(session, "search", draft, repair))


def with_result(session: RunContext, state: Tournament, result: SearchResult) -> Tournament:
    """Add a step to the trace of a search, with its program, the versions of that and all runs."""
    task, outcome = result.task, result.outcome
    if result.candidate is None or outcome is None:
        state = replace(state, discarded={**state.discarded, task.name: result.complaint})
        step = SearchStep(task.number, task.move, task.shown, None, inf, task.note, task.author)
    else:
        state = with_outcome(session, state.with_candidates(result.candidate), outcome)
        final = outcome.final.id
        known = state.execution_of(final)
        assert known is not None
        step = SearchStep(task.number, task.move, task.shown, final, known.metric, task.note, task.author)
    return replace(state, search=(*state.search, step))


def improvement_prompt(session: RunContext, state: Tournament, shown: Sequence[str]) -> Conversation:
    """Return CodePDE's request for a program that is better than some, each shown with its result, in this order."""
    wall_s = request_of(session.config, session.problem, session.data, "", "validation").limits.wall_s
    prompt = render(
        "codepde/refine",
        **session.told,
        scored=session.scored,
        programs=[shown_program(session, state, name) for name in shown],
        kinds=session.config.feedback.metrics,
        slow_s=wall_s / 2,
        wall_s=wall_s,
    )
    return (system_prompt("codepde/system"), Message("user", prompt))


def checkpoint_periodically(session: RunContext, state: Tournament, number: int) -> None:
    """Keep the state of a search every few steps."""
    if number % CHECKPOINT_STEPS == 0:
        session.effects.checkpoint(f"search/step-{number}", state)


def shown_program(session: RunContext, state: Tournament, name: str) -> dict[str, str]:
    """Return a program that was run with its result, as prompts show it."""
    run = state.execution_of(name)
    assert run is not None
    return {
        "id": name,
        "code": state.candidates[name].code.strip(),
        "feedback": session.feedback(run.evaluation),
    }
