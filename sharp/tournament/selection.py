"""Selection: a judge reads the pool, ranks a short list with reasons and nominates one (paper section 3.3)."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass

from sharp.errors import ReplyError
from sharp.evaluation import feedback_described
from sharp.llm import (
    NO_REASON,
    Conversation,
    Message,
    SelectionReply,
    extract_json,
    read_selection,
    render,
    seed_at,
)
from sharp.tournament.run_context import RunContext, ask_and_read, system_prompt
from sharp.tournament.state import Candidate, Selection, Tournament


@dataclass(frozen=True)
class Judge:
    """A judge within one cycle: its number (from 1), its model and everything said so far."""

    number: int
    model: str
    conversation: Conversation


def pool(session: RunContext, state: Tournament, cycle: int) -> list[Candidate]:
    """Return the candidates a cycle judges.

    The first cycle sees the originals; later ones add all hybrids and repairs, and keep of the originals the union of
    all short lists, or all of them if so configured.
    """
    everyone = list(state.candidates.values())
    if cycle == 1 or session.config.synthesis.pool == "all":
        return everyone
    listed = {name for selection in state.selections for name, _ in selection.shortlist}
    return [item for item in everyone if item.origin != "genesis" or item.id in listed]


async def select(session: RunContext, state: Tournament, cycle: int, number: int) -> tuple[Selection, Judge]:
    """Let one judge read the pool in its own seeded order and choose.

    A judge whose answer stays unreadable nominates the first program of its order, and the selection says so.
    """
    model = session.config.models.judges[number - 1]
    path = f"cycle-{cycle}/select/judge-{number}"
    shown = pool(session, state, cycle)
    if session.config.synthesis.shuffle:
        random.Random(seed_at(session.config.seed, f"{path}/order")).shuffle(shown)
    own_criteria: tuple[str, ...] = ()
    conversation: Conversation = (system_prompt("synthesis/system"),)
    if session.config.synthesis.criteria == "self-generated":
        prompt = render("synthesis/criteria", description=session.description)
        conversation = (*conversation, Message("user", prompt))
        own_criteria, conversation = await ask_and_read(
            session, f"{path}/criteria", model, "judge", conversation, _read_criteria
        )
    length = session.config.shortlist_length(len(shown))
    prompt = _prompt(session, state, shown, cycle, length, own_criteria)
    conversation = (*conversation, Message("user", prompt))
    ids = [item.id for item in shown]
    try:
        choice, conversation = await ask_and_read(
            session,
            path,
            model,
            "judge",
            conversation,
            lambda text: read_selection(text, ids, max_shortlist=length),
        )
    except ReplyError as error:
        choice = SelectionReply((), ((ids[0], "not read"),), ids[0], f"no readable choice: {error}")
        own_criteria = ()
        # In the form that was asked for: models copy what they see of themselves.
        taken = {"shortlist": [{"id": ids[0], "reason": NO_REASON}], "nominee": ids[0]}
        silence = Message("assistant", f"```json\n{json.dumps(taken)}\n```")
        conversation = (*conversation, silence)
    selection = Selection(
        cycle,
        number,
        model,
        tuple(ids),
        choice.criteria or own_criteria,
        choice.shortlist,
        choice.nominee,
        choice.nominee_reason,
    )
    return selection, Judge(number, model, conversation)


def nominees(session: RunContext, selections: list[Selection]) -> list[str]:
    """Return each judge's nominee; with `distinct_nominees` a taken one gives way to the next of the list."""
    chosen: list[str] = []
    for selection in selections:
        ranked = [selection.nominee, *(name for name, _ in selection.shortlist)]
        free = [name for name in ranked if name not in chosen]
        distinct = session.config.synthesis.distinct_nominees and free
        chosen.append(free[0] if distinct else selection.nominee)
    return chosen


def _read_criteria(text: str) -> tuple[str, ...]:
    listed = extract_json(text).get("criteria")
    if not isinstance(listed, list) or not listed:
        raise ReplyError('expected a JSON block {"criteria": ["…"]} with at least one entry')
    return tuple(str(item) for item in listed)


def _prompt(
    session: RunContext,
    state: Tournament,
    shown: list[Candidate],
    cycle: int,
    length: int,
    own_criteria: tuple[str, ...],
) -> str:
    return render(
        "synthesis/select",
        description=session.description,
        criteria=session.config.synthesis.criteria,
        own_criteria=own_criteria,
        feedback=feedback_described(session.config.feedback.metrics, session.config.feedback.weights),
        candidates=[
            {
                "id": item.id,
                "strategy": item.strategy,
                "code": item.code.strip(),
                "history": history(session, state, item),
            }
            for item in shown
        ],
        cycle=cycle,
        shortlist=length,
    )


def history(session: RunContext, state: Tournament, candidate: Candidate) -> str:
    """Return what earlier cycles know of a candidate: its changes with reasons and its measured result."""
    lines = [f"- {change}" for change in candidate.changes]
    execution = state.execution_of(candidate.id)
    if execution is not None:
        lines.append(session.feedback(execution.evaluation))
    return "\n".join(lines)
