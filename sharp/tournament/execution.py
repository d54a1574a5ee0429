"""Running a candidate: smoke run, repairs by its author, then the validation run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from sharp.errors import ReplyError
from sharp.evaluation import Evaluation, InterfaceCheck, canonical_hash, failure_text
from sharp.llm import Conversation, Message, changed_share, explanation, read_correction, render
from sharp.tournament.agreement import with_agreement
from sharp.tournament.run_context import RunContext, ask_and_read, gather_all, system_prompt
from sharp.tournament.state import Candidate, Execution, Tournament


@dataclass(frozen=True)
class CandidateRuns:
    """What became of one candidate: the versions its repairs made, every run, and the version that stands for it."""

    final: Candidate
    repaired: tuple[Candidate, ...]
    executions: tuple[Execution, ...]


Repair = Callable[[str, Sequence[Candidate], Sequence[Execution]], Awaitable[Candidate | None]]
"""Corrects the last of a program's versions, which failed: the place to ask at, all versions, all runs so far."""

_TAIL = 2000  # characters of a program's output that a request to repair it shows
_TOLD = 300  # characters of what its author said of an attempt, and of what came of it
_COSTLY = ("timeout", "memory")


async def execute(
    session: RunContext,
    path: str,
    candidate: Candidate,
    abort_above: float | None = None,
    repair: Repair | None = None,
    smoke: Execution | None = None,
) -> CandidateRuns:
    """Run a candidate, repairing it while it fails and attempts remain; by default its author model is asked afresh.

    Each version runs on the small smoke set first, so that a crash costs seconds; with feedback `none` that run is
    all there is. `smoke` is that run where it was made before. A validation run that proves its nRMSE to be above
    `abort_above` is stopped early and not repaired.
    """
    repair = repair or partial(_ask_author, session)
    path = f"{path}/{candidate.id}"
    versions = [candidate]
    executions = await _run(session, path, candidate, abort_above, smoke)
    while len(versions) <= session.config.synthesis.repairs:
        failure = executions[-1].evaluation.failure
        if failure is None or failure.kind == "early_stopped":
            break
        place = f"{path}/debug-{len(versions)}"
        repaired = await repair(place, versions, executions)
        if repaired is None:
            break
        versions.append(repaired)
        executions += await _run(session, place, repaired, abort_above)
    return CandidateRuns(versions[-1], tuple(versions[1:]), tuple(executions))


async def smoke_runs(session: RunContext, state: Tournament) -> Tournament:
    """Run every candidate of genesis on the smoke samples, equal programs once; none is dropped or repaired for it."""
    distinct: dict[str, Candidate] = {}
    for candidate in state.candidates.values():
        distinct.setdefault(canonical_hash(candidate.code), candidate)
    results = await gather_all(_smoke(session, f"genesis/{each.id}", each) for each in distinct.values())
    runs = dict(zip(distinct, results, strict=True))
    found = {each.id: _as_run_of(each, runs[canonical_hash(each.code)]) for each in state.candidates.values()}
    state = replace(state, smoke=found)
    session.effects.checkpoint("smoke", state)
    return state


def _as_run_of(candidate: Candidate, run: Execution) -> Execution:
    if candidate.id == run.candidate:
        return run
    return replace(run, candidate=candidate.id, reused_from=run.candidate)


async def _smoke(session: RunContext, path: str, candidate: Candidate) -> Execution:
    request = session.evaluation(candidate.code, "smoke")
    evaluation = await session.effects.evaluate(f"{path}/smoke", request)
    return _execution(session, candidate, f"{path}/smoke", "smoke", evaluation)


async def _run(
    session: RunContext,
    path: str,
    candidate: Candidate,
    abort_above: float | None,
    smoke: Execution | None = None,
) -> list[Execution]:
    runs = [smoke or await _smoke(session, path, candidate)]
    if runs[0].evaluation.ok and "none" not in session.config.feedback.metrics:
        request = session.evaluation(candidate.code, "validation", abort_above=abort_above)
        full = await session.effects.evaluate(f"{path}/validation", request)
        runs.append(_execution(session, candidate, f"{path}/validation", "validation", full))
    return runs


def _execution(
    session: RunContext, candidate: Candidate, path: str, split: str, evaluation: Evaluation
) -> Execution:
    # A smoke run's numbers stand for nothing: only that it passed counts, and only where no more is asked.
    counts = split == "validation" or "none" in session.config.feedback.metrics
    value = session.metric(evaluation) if counts else inf
    return Execution(candidate.id, path, split, evaluation, value)


async def _ask_author(
    session: RunContext, path: str, versions: Sequence[Candidate], executions: Sequence[Execution]
) -> Candidate | None:
    """Let the author correct the last version; None if its answer holds no other program."""
    broken, evaluation = versions[-1], executions[-1].evaluation
    assert evaluation.failure is not None
    output = "\n".join(filter(None, (evaluation.stdout.strip(), evaluation.stderr.strip())))
    prompt = render(
        "debug/repair",
        **session.told,
        code=broken.code.strip(),
        failure=failure_text(evaluation.failure),
        output=output[-_TAIL:].replace("```", ""),
        attempts=attempts(versions, executions) if len(versions) > 1 else [],
        too_costly=evaluation.failure.kind in _COSTLY,
    )
    conversation = (system_prompt(), Message("user", prompt))
    repaired, _ = await ask_to_repair(session, path, broken.author, conversation, versions)
    return repaired


def attempts(versions: Sequence[Candidate], executions: Iterable[Execution]) -> list[str]:
    """Return a line for each version of a program: what its author meant to correct, and what came of it."""
    last = {run.candidate: run.evaluation.failure for run in executions}
    lines = []
    for version in versions:
        failure = last.get(version.id)
        outcome = "ran" if failure is None else f"failed ({failure.kind}): {clipped(failure.message, _TOLD)}"
        meant = f"{clipped(version.explanation, _TOLD)} " if version.origin == "debug" else ""
        lines.append(f"`{version.id}`: {meant}It {outcome}")
    return lines


def repairs_told(session: RunContext, state: Tournament, candidate: Candidate) -> list[str]:
    """Return what a program went through until it was repaired, a line for each version; none where it ran at once.

    Nothing is said where judges are told of no results.
    """
    if "none" in session.config.feedback.metrics:
        return []
    versions = [candidate]
    while versions[0].origin == "debug":
        versions.insert(0, state.candidates[versions[0].parents[0]])
    told = attempts(versions, state.executions) if len(versions) > 1 else []
    return [f"- {line}" for line in told]


def checks_told(session: RunContext, state: Tournament, candidate: Candidate) -> list[str]:
    """Return how a program did on another grid and at uneven times; nothing where judges are told of no results.

    Of several runs the first one that failed a check counts.
    """
    if "none" in session.config.feedback.metrics:
        return []
    checks: dict[str, InterfaceCheck] = {}
    for run in state.executions:
        if run.candidate == candidate.id:
            checks |= {
                c.name: c for c in run.evaluation.checks if c.name not in checks or checks[c.name].passed
            }
    return [f"Check on {c.name}: {'passed' if c.passed else f'FAILED. {c.message}'}" for c in checks.values()]


def clipped(text: str, longest: int) -> str:
    """Return a model's words as part of one line, so that they cannot pass for headings or fences of a prompt."""
    words = " ".join(text.replace("```", "").split())
    return words if len(words) <= longest else f"{words[:longest].rsplit(' ', 1)[0]} …"


async def ask_to_repair(
    session: RunContext, path: str, model: str, conversation: Conversation, versions: Sequence[Candidate]
) -> tuple[Candidate | None, Conversation]:
    """Return the next version of a program from who is asked to correct the last, and the conversation with the answer.

    There is no next version where the answers hold no other program. `model` is the author, empty for a program that
    was given: the generator then answers.
    """

    def read(text: str) -> Candidate | None:
        return _repaired_version(session, versions, text)

    try:
        return await ask_and_read(session, path, model or session.generator, "debug", conversation, read)
    except ReplyError:
        return None, conversation


def _repaired_version(session: RunContext, versions: Sequence[Candidate], text: str) -> Candidate | None:
    """Return the next version from the reply of who was to correct the last; None if it is the same program."""
    original, broken = versions[0], versions[-1]
    code = read_correction(text, broken.code, session.problem.interface.function)
    if canonical_hash(code) == canonical_hash(broken.code):
        return None
    return replace(
        original,
        id=f"{original.id}d{len(versions)}",
        origin="debug",
        code=code,
        explanation=explanation(text),
        parents=(broken.id,),
        changes=(),
        changed_share=changed_share(broken.code, code),
        patch_match_level=None,
    )


def with_outcome(session: RunContext, state: Tournament, outcome: CandidateRuns) -> Tournament:
    """Add the versions and runs of a program to a state that has the program itself; all agree with it, or do not."""
    state = state.with_candidates(*outcome.repaired)
    return with_agreement(session, replace(state, executions=(*state.executions, *outcome.executions)))


def find_duplicate_run(state: Tournament, code: str) -> Execution | None:
    """Return the deciding run of an executed program that is the same up to comments and layout."""
    wanted = canonical_hash(code)
    for execution in reversed(state.executions):
        known = state.candidates[execution.candidate]
        if execution.split != "test" and canonical_hash(known.code) == wanted:
            return state.execution_of(known.id)
    return None
