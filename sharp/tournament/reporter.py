"""The reporter: a model's prose about a finished tournament. No figure of a report comes from here."""

from __future__ import annotations

from dataclasses import replace

from sharp.errors import ReplyError
from sharp.llm import Message, extract_json, render
from sharp.tournament.run_context import RunContext, ask_and_read, system_prompt
from sharp.tournament.state import ReporterText, Tournament


async def summarise(session: RunContext, state: Tournament) -> Tournament:
    """Let the reporter model write the report's prose; an unreadable answer leaves it out."""
    if state.best is None:
        return state
    execution = state.execution_of(state.best)
    assert execution is not None
    prompt = render(
        "reporter/summary",
        description=session.description,
        course=course(state),
        winner=f"{state.best}, on validation data:\n{session.feedback(execution.evaluation)}",
        code=state.candidates[state.best].code.strip(),
    )
    conversation = (system_prompt(), Message("user", prompt))
    try:
        prose, _ = await ask_and_read(
            session, "reporter/summary", session.config.models.reporter, "reporter", conversation, read_prose
        )
    except ReplyError:
        return state
    return replace(state, prose=prose)


def read_prose(text: str) -> ReporterText:
    """Read the reporter's JSON block; raises ReplyError naming what is missing."""
    data = extract_json(text)
    missing = [key for key in ("summary", "findings", "efficiency", "conclusions") if not data.get(key)]
    if missing:
        raise ReplyError(f"the JSON block lacks {', '.join(missing)}")
    findings = data["findings"] if isinstance(data["findings"], list) else [data["findings"]]
    return ReporterText(
        summary=str(data["summary"]),
        findings=tuple(str(item) for item in findings),
        efficiency=str(data["efficiency"]),
        conclusions=str(data["conclusions"]),
    )


def course(state: Tournament) -> str:
    """Return the course of a tournament as plain lines: what each judge did in each round and what came of it."""
    lines: list[str] = []
    for entry in state.entries:
        name = entry.candidate or "no program"
        value = f"{entry.metric:.3e}" if entry.metric < float("inf") else "no result"
        changes = state.candidates[name].changes if name in state.candidates else ()
        why = "; ".join(map(str, changes)) or entry.note
        lines.append(
            f"- cycle {entry.cycle}, round {entry.round}, judge {entry.judge}: {entry.action} {name}, {value}"
            + (f": {why}" if why else "")
        )
    lines += [f"- cycle {s.cycle}, round {s.round}: {s.reason}" for s in state.saturations]
    return "\n".join(lines) or "Every candidate was run; the best was kept."
