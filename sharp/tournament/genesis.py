"""Stage 2, Genesis: many candidate programs, none executed (paper section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass

from sharp.errors import ReplyError
from sharp.llm import Conversation, Message, explanation, extract_code, read_strategy, render
from sharp.tournament.analysis import analyse, findings
from sharp.tournament.run_context import RunContext, ask, gather_all, system_prompt
from sharp.tournament.state import Analysis, Candidate

# Branches whose programs rest on a derivation, which gets a call of its own before the code (paper section 3.2).
TWO_STEP = ("analytical", "transformed")


@dataclass(frozen=True)
class Genesis:
    """The candidates by id, and for each reply that held no usable program its id and why."""

    candidates: tuple[Candidate, ...]
    discarded: tuple[tuple[str, str], ...]


async def generate(session: RunContext, analysis: Analysis) -> Genesis:
    """Write the configured number of candidates, concurrently and unexecuted."""
    options = session.config.genesis
    ids = [f"c{number:03d}" for number in range(1, options.candidates + 1)]
    batches = [
        ids[start : start + options.samples_per_call]
        for start in range(0, len(ids), options.samples_per_call)
    ]
    results = await gather_all(_write(session, analysis, batch) for batch in batches)
    drafts = [draft for batch in results for draft in batch]
    return Genesis(
        tuple(draft for draft in drafts if isinstance(draft, Candidate)),
        tuple(draft for draft in drafts if not isinstance(draft, Candidate)),
    )


async def _write(
    session: RunContext, analysis: Analysis, ids: list[str]
) -> list[Candidate | tuple[str, str]]:
    path, model = f"genesis/{ids[0]}", session.config.models.generator
    if session.config.analysis.per_candidate:
        analysis = await analyse(session, f"{path}/analysis", analysis.written)
    common = {
        "description": session.description,
        "steps": findings(analysis),
        "strategy": analysis.strategy,
    }
    conversation: Conversation = (system_prompt(),)
    if analysis.strategy in TWO_STEP and session.config.genesis.two_step:
        conversation = (*conversation, Message("user", render("genesis/derive", **common)))
        reply = await ask(session, f"{path}/derive", model, "genesis", conversation)
        conversation = (*conversation, Message("assistant", reply.text))
    prompt = render(
        "genesis/generate",
        **common,
        bounds=analysis.bounds,
        prior=session.prior,
        template=session.template.strip(),
        function=session.problem.interface.function,
    )
    conversation = (*conversation, Message("user", prompt))
    reply = await ask(session, f"{path}/code", model, "genesis", conversation, n=len(ids))
    return [_draft(name, text, session, analysis) for name, text in zip(ids, reply.texts, strict=True)]


def _draft(name: str, text: str, session: RunContext, analysis: Analysis) -> Candidate | tuple[str, str]:
    try:
        code = extract_code(text, session.problem.interface.function)
    except ReplyError as error:
        return name, str(error)
    return Candidate(
        id=name,
        origin="genesis",
        strategy=read_strategy(code, analysis.strategy),
        author=session.config.models.generator,
        code=code,
        explanation=explanation(text),
    )
