"""Running a candidate: smoke run, repairs by its author, then the validation run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf

from sharp.errors import ReplyError
from sharp.evaluation import Evaluation, canonical_hash, failure_text
from sharp.llm import Conversation, Message, changed_share, explanation, extract_code, render
from sharp.tournament.run_context import RunContext, ask_and_read, system_prompt
from sharp.tournament.state import Candidate, Execution, Tournament


@dataclass(frozen=True)
class CandidateRuns:
    """What became of one candidate: the versions its repairs made, every run, and the version that stands for it."""

    final: Candidate
    repaired: tuple[Candidate, ...]
    executions: tuple[Execution, ...]

    @property
    def deciding_run(self) -> Execution:
        """The run that decides."""
        return self.executions[-1]


Repair = Callable[[str, Sequence[Candidate], Evaluation], Awaitable[Candidate | None]]
"""Corrects the last of a program's versions, which failed: the place to ask at, all versions, the failed run."""


async def execute(
    session: RunContext,
    path: str,
    candidate: Candidate,
    abort_above: float | None = None,
    repair: Repair | None = None,
) -> CandidateRuns:
    """Run a candidate, repairing it while it fails and attempts remain; by default its author model is asked afresh.

    Each version runs on the small smoke set first, so that a crash costs seconds; with feedback `none` that run is
    all there is. A validation run that proves its nRMSE to be above `abort_above` is stopped early and not repaired.
    """
    repair = repair or partial(_ask_author, session)
    path = f"{path}/{candidate.id}"
    versions = [candidate]
    executions = await _run(session, path, candidate, abort_above)
    while len(versions) <= session.config.synthesis.repairs:
        failure = executions[-1].evaluation.failure
        if failure is None or failure.kind == "early_stopped":
            break
        place = f"{path}/debug-{len(versions)}"
        repaired = await repair(place, versions, executions[-1].evaluation)
        if repaired is None:
            break
        versions.append(repaired)
        executions += await _run(session, place, repaired, abort_above)
    return CandidateRuns(versions[-1], tuple(versions[1:]), tuple(executions))


async def _run(
    session: RunContext, path: str, candidate: Candidate, abort_above: float | None
) -> list[Execution]:
    smoke = await session.effects.evaluate(f"{path}/smoke", session.evaluation(candidate.code, "smoke"))
    runs = [_execution(session, candidate, f"{path}/smoke", "smoke", smoke)]
    if smoke.ok and "none" not in session.config.feedback.metrics:
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
    session: RunContext, path: str, versions: Sequence[Candidate], evaluation: Evaluation
) -> Candidate | None:
    """Let the author correct the last version; None if its answer holds no other program."""
    broken = versions[-1]
    assert evaluation.failure is not None
    prompt = render(
        "debug/repair",
        description=session.description,
        code=broken.code.strip(),
        failure=failure_text(evaluation.failure),
        function=session.problem.interface.function,
    )
    conversation = (system_prompt(), Message("user", prompt))
    repaired, _ = await ask_to_repair(session, path, broken.author, conversation, versions)
    return repaired


async def ask_to_repair(
    session: RunContext, path: str, model: str, conversation: Conversation, versions: Sequence[Candidate]
) -> tuple[Candidate | None, Conversation]:
    """Return the next version of a program from who is asked to correct the last, and the conversation with the answer.

    There is no next version where the answers hold no other program.
    """

    def read(text: str) -> Candidate | None:
        return _repaired_version(session, versions, text)

    try:
        return await ask_and_read(session, path, model, "debug", conversation, read)
    except ReplyError:
        return None, conversation


def _repaired_version(session: RunContext, versions: Sequence[Candidate], text: str) -> Candidate | None:
    """Return the next version from the reply of who was to correct the last; None if it is the same program."""
    original, broken = versions[0], versions[-1]
    code = extract_code(text, session.problem.interface.function)
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


def with_outcome(state: Tournament, outcome: CandidateRuns) -> Tournament:
    """Add the versions and runs of a program to a state that has the program itself."""
    state = state.with_candidates(*outcome.repaired)
    return replace(state, executions=(*state.executions, *outcome.executions))


def find_duplicate_run(state: Tournament, code: str) -> Execution | None:
    """Return the deciding run of an executed program that is the same up to comments and layout."""
    wanted = canonical_hash(code)
    for execution in reversed(state.executions):
        known = state.candidates[execution.candidate]
        if execution.split != "test" and canonical_hash(known.code) == wanted:
            return state.execution_of(known.id)
    return None
