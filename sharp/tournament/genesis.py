"""Stage 2, Genesis: many candidate programs, none executed (paper section 3.2)."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from sharp.errors import ConfigurationError, ReplyError
from sharp.evaluation import strategy_of
from sharp.llm import (
    CUT_OFF,
    ChatReply,
    Conversation,
    Message,
    explanation,
    extract_code,
    render,
    said,
)
from sharp.tournament.analysis import analyse, findings, is_usable
from sharp.tournament.assignments import assign
from sharp.tournament.authors import in_turn
from sharp.tournament.run_context import (
    RunContext,
    StartingProgram,
    ask,
    ask_and_read,
    gather_all,
    system_prompt,
    texts_apart,
)
from sharp.tournament.state import Analysis, Assignment, Candidate

log = logging.getLogger(__name__)
# Branches whose programs rest on a derivation, which gets a call of its own before the code (paper section 3.2).
TWO_STEP = ("analytical", "transformed")


@dataclass(frozen=True)
class Genesis:
    """The candidates by id, and for each reply that held no usable program its id and why."""

    candidates: tuple[Candidate, ...]
    discarded: tuple[tuple[str, str], ...]


def starting_ids(session: RunContext) -> Iterator[tuple[str, StartingProgram]]:
    """Yield the user's own solvers with their ids."""
    return ((f"u{number:03d}", given) for number, given in enumerate(session.start, start=1))


def starting_candidates(session: RunContext) -> tuple[Candidate, ...]:
    """Return the user's own solvers as candidates."""
    return tuple(
        Candidate(
            id=name,
            origin="start",
            strategy=strategy_of(given.code),
            author="",
            code=given.code,
            explanation="",
        )
        for name, given in starting_ids(session)
    )


async def generate(session: RunContext, analysis: Analysis) -> Genesis:
    """Write the configured number of candidates, concurrently and unexecuted."""
    options = session.config.genesis
    ids = [f"c{number:03d}" for number in range(1, options.candidates + 1)]
    batches = [
        ids[start : start + options.samples_per_call]
        for start in range(0, len(ids), options.samples_per_call)
    ]
    assignments: list[Assignment | None] = [None] * len(batches)
    if options.assignments == "plan":
        packages = session.environment.packages if session.environment else {}
        assignments[:] = assign(session.problem, analysis, session.config.seed, len(batches), [*packages])
    results = await gather_all(
        _write(
            replace(session, author=in_turn(session.config, int(batch[0][1:]))), analysis, batch, assignment
        )
        for batch, assignment in zip(batches, assignments, strict=True)
    )
    drafts = [draft for batch in results for draft in batch]
    discarded = tuple(draft for draft in drafts if not isinstance(draft, Candidate))
    if len(discarded) == len(drafts):
        refuse_all_cut(dict(discarded))
    return Genesis(tuple(draft for draft in drafts if isinstance(draft, Candidate)), discarded)


def refuse_all_cut(discarded: Mapping[str, str]) -> None:
    """Raise `ConfigurationError` where every one of the discarded programs was cut off by the limit of answers.

    More calls under the same limit would end alike, and a run without a candidate would pass for one that has ended.
    """
    if discarded and all(reason.startswith(CUT_OFF) for reason in discarded.values()):
        reason = next(iter(discarded.values()))
        raise ConfigurationError(
            f"no program could be read: all {len(discarded)} programs were cut off. {reason}"
        )


async def _write(
    session: RunContext, analysis: Analysis, ids: list[str], assignment: Assignment | None
) -> list[Candidate | tuple[str, str]]:
    path, model = f"genesis/{ids[0]}", session.generator
    if session.config.analysis.per_candidate:
        analysis = await analyse(session, f"{path}/analysis", analysis.written)
    common = {**session.told, "steps": findings(analysis), "strategy": analysis.strategy}
    conversation: Conversation = (system_prompt(),)
    if analysis.strategy in TWO_STEP and session.config.genesis.two_step:
        asked = (*conversation, Message("user", render("genesis/derive", **common)))
        try:
            _, conversation = await ask_and_read(session, f"{path}/derive", model, "genesis", asked, said)
        except ReplyError as error:
            log.warning("%s: the program is asked for without a derivation. %s", path, error)
    prompt = render(
        "genesis/generate",
        **common,
        derived=len(conversation) > 1,
        bounds=[bound for bound in analysis.bounds if is_usable(bound)],
        start=[{"id": name, "code": given.code.strip()} for name, given in starting_ids(session)],
        prior=session.prior,
        template=session.template.strip(),
    )
    if assignment is not None:
        # At the end, so that all authors' prompts begin alike.
        steady = session.problem.time is None
        prompt = f"{prompt}\n{render('genesis/assignment', **vars(assignment), steady=steady)}"
    conversation = (*conversation, Message("user", prompt))
    reply = await ask(session, f"{path}/code", model, "genesis", conversation, n=len(ids))
    drafts = (
        _draft(session, name, conversation, text, assignment)
        for name, text in zip(ids, texts_apart(reply), strict=True)
    )
    return await gather_all(drafts)


async def _draft(
    session: RunContext,
    name: str,
    conversation: Conversation,
    reply: ChatReply,
    assignment: Assignment | None,
) -> Candidate | tuple[str, str]:
    """Return the program of a reply, which is sent back once where it holds none; else its id and why."""

    def read(text: str) -> Candidate:
        code = extract_code(text, session.problem.interface.function)
        return Candidate(
            id=name,
            origin="genesis",
            strategy=strategy_of(code),
            author=model,
            code=code,
            explanation=explanation(text),
            assignment=assignment,
        )

    model = session.generator
    try:
        path = f"genesis/{name}/code"
        candidate, _ = await ask_and_read(session, path, model, "genesis", conversation, read, given=reply)
    except ReplyError as error:
        return name, str(error)
    return candidate
