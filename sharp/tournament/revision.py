"""A hybridization turn: a judge patches a declared base (paper section 3.3)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sharp.errors import ReplyError
from sharp.evaluation import canonical_hash
from sharp.llm import (
    Conversation,
    Message,
    PatchFailure,
    Revision,
    apply_patch,
    explanation,
    failure_text,
    read_revision,
    read_strategy,
    refuse_cut,
    render,
    said,
)
from sharp.tournament.run_context import RunContext, ask
from sharp.tournament.selection import Judge
from sharp.tournament.state import Action, Candidate, Change, JudgeTurn, Tournament

# A patch that rewrites more than this share of the lines is no longer incremental: the report says so.
LARGE_CHANGE = 0.6


@dataclass(frozen=True)
class TurnResult:
    """One judge's move: the action, the new program if there is one, and the judge with its longer memory."""

    judge: Judge
    action: Action
    base: str
    candidate: Candidate | None
    note: str


@dataclass(frozen=True)
class RevisionBases:
    """What a judge may build on: its latest program, its best, the best of all, and every executed one."""

    latest: str
    own_best: str
    global_best: str
    bases: tuple[str, ...]


def revision_bases(state: Tournament, cycle: int, number: int) -> RevisionBases:
    """Return where a judge stands before its turn."""
    own = [e for e in state.entries if e.cycle == cycle and e.judge == number and e.candidate is not None]
    names = [e.candidate for e in own if e.candidate is not None]
    metrics = {e.candidate: e.metric for e in state.executions if e.split != "test"}
    best = min(metrics, key=lambda name: metrics[name])
    return RevisionBases(
        latest=names[-1],
        own_best=min(names, key=lambda name: metrics.get(name, float("inf"))),
        global_best=best,
        bases=tuple(dict.fromkeys([*names[::-1], best, *metrics])),
    )


async def revise(
    session: RunContext, state: Tournament, judge: Judge, cycle: int, round_: int, notice: str = ""
) -> TurnResult:
    """Show a judge the last round's results and let it patch a base of its choice.

    A patch that fails is sent back with the failing hunk and the nearest lines of the base; the last retry asks for
    the whole file. A judge that still gives no usable answer forfeits the round, and everything stays as it was.
    """
    place = revision_bases(state, cycle, judge.number)
    last = [e for e in state.entries if e.cycle == cycle and e.round == round_ - 1]
    shown = {name for s in state.selections if s.cycle == cycle for name in s.shown}
    prompt = render(
        "synthesis/revise",
        round=round_ - 1,
        cycle=cycle,
        judge=judge.number,
        results=[_result(session, state, entry, shown) for entry in last],
        notice=notice,
        bases=place.bases,
        latest=place.latest,
        own_best=place.own_best,
        global_best=place.global_best,
    )
    conversation = (*judge.conversation, Message("user", prompt))
    path = f"cycle-{cycle}/round-{round_}/judge-{judge.number}"
    keep = {item for s in state.selections if s.cycle == cycle for item, _ in s.shortlist} | {*place.bases}
    problems: list[str] = []
    retries = session.config.synthesis.patch_retries
    for attempt in range(retries + 1):
        name = path if attempt == 0 else f"{path}/retry-{attempt}"
        reply = await ask(session, name, judge.model, "judge", conversation, keep=keep)
        conversation = (*conversation, Message("assistant", said(reply.text)))
        try:
            if reply.finish_reasons[0] == "length":
                refuse_cut(reply.text, reply.usage.completion)
            revision = read_revision(
                reply.text,
                place.bases,
                default_base=place.latest,
                donors=tuple(state.candidates),
                function=session.problem.interface.function,
            )
        except ReplyError as error:
            problem = str(error)
        else:
            made = _apply(state, judge, revision, cycle, round_, conversation)
            if isinstance(made, TurnResult):
                return made
            problem = made
        problems.append(problem)
        again = render("synthesis/patch_failed", failure=problem, last_try=attempt == retries - 1)
        conversation = (*conversation, Message("user", again))
    return TurnResult(
        replace(judge, conversation=conversation[:-1]), "forfeit", place.latest, None, problems[-1]
    )


def _apply(
    state: Tournament, judge: Judge, revision: Revision, cycle: int, round_: int, conversation: Conversation
) -> TurnResult | str:
    """Return the finished turn, or the sentence that says why the patch does not apply."""
    judge = replace(judge, conversation=conversation)
    base = state.candidates[revision.base_id]
    if revision.kind == "keep":
        return TurnResult(judge, "keep", base.id, None, revision.body)
    patched = apply_patch(base.code, revision)
    if isinstance(patched, PatchFailure):
        return failure_text(patched)
    if canonical_hash(patched.code) == canonical_hash(base.code):
        return TurnResult(judge, "no-op", base.id, None, "the patch changes nothing but comments or layout")
    changes = tuple(Change(what, why, tuple(sources)) for what, why, sources in revision.changes)
    donors = [name for change in changes for name in change.sources if name in state.candidates]
    candidate = Candidate(
        id=f"h{cycle}.{round_}.{judge.number}",
        origin="hybrid",
        strategy=read_strategy(patched.code, base.strategy),
        author=judge.model,
        code=patched.code,
        explanation=explanation(conversation[-1].content),
        parents=tuple(dict.fromkeys([base.id, *(name for name in donors if name != base.id)])),
        cycle=cycle,
        round=round_,
        judge=judge.number,
        changes=changes,
        changed_share=patched.changed_share,
        patch_match_level=patched.match_level,
    )
    action: Action = "rewrite" if revision.kind == "whole-file" else "patch"
    notes = list(patched.notes)
    if patched.changed_share > LARGE_CHANGE:
        notes.append(f"{patched.changed_share:.0%} of the lines changed: hardly an incremental patch")
    return TurnResult(judge, action, base.id, candidate, "; ".join(notes))


def _result(session: RunContext, state: Tournament, entry: JudgeTurn, shown: set[str]) -> dict[str, object]:
    if entry.candidate is None or entry.action in ("keep", "no-op", "forfeit"):
        return {
            "id": entry.candidate or "no program",
            "judge": entry.judge,
            "base": None,
            "changes": f"{entry.action}: {entry.note}",
            "feedback": "No new result.",
            "code": "",
        }
    candidate = state.candidates[entry.candidate]
    execution = state.execution_of(candidate.id)
    assert execution is not None
    return {
        "id": candidate.id,
        "judge": entry.judge,
        "base": candidate.parents[0] if candidate.parents else None,
        "changes": "\n".join(f"- {change}" for change in candidate.changes),
        "feedback": session.feedback(execution.evaluation),
        "code": "" if candidate.id in shown else candidate.code.strip(),
    }
