"""Running a benchmark: every trial once, whatever interrupts it.

FOLDER/trials.jsonl                the rows of all trials that have ended
FOLDER/sessions/CASE/STYLE/…        the sessions of the team (`sharp.agent.sessions`), which are resumed
FOLDER/references/                 computed references
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from hpc.journal import EffectRecord, read_run
from sharp.agent import PROGRAMS, GraphMemory, SessionResult, ToolError, run_session
from sharp.experiments.agent_benchmark.chain_scoring import AcceptedChain
from sharp.experiments.agent_benchmark.held_out import HeldOutReference, Score, held_out_reference, score
from sharp.experiments.agent_benchmark.process_pool import WorkerDied, counter, map_unordered
from sharp.experiments.agent_benchmark.trials import (
    BenchmarkRecord,
    BenchmarkTrial,
    Found,
    IllPosedOutcome,
    IllPosedResult,
    ResultsWriter,
    TrialResult,
    WellPosednessCheck,
    problem_hash,
)
from sharp.llm import ChatReply, TokenUsage
from sharp.problems import BenchmarkCase, IllPosedCase, diagnose, to_yaml

OnMessage = Callable[[str], None]

_ERRORS = 5  # parameter errors that a row names


def run_benchmark(
    folder: Path, trials: Sequence[BenchmarkTrial], jobs: int, on_message: OnMessage = lambda _: None
) -> None:
    """Run all trials that have no row yet, or a failed one, in that many processes.

    Raises `RunLocked` where another process does so, and KeyboardInterrupt; everything stays resumable.
    """
    with ResultsWriter(folder) as writer:
        for warning in writer.record.warnings:
            on_message(warning)
        left = work_left(trials, writer.record)
        total, number = sum(isinstance(item, BenchmarkTrial) for batch in left for item in batch), 0
        counted = counter(total)
        for found in map_unordered(left, partial(_result, folder), jobs, writer.beat):
            row = _lost(found) if isinstance(found, WorkerDied) else found
            if row is not None:
                writer.add(row)
            if isinstance(row, TrialResult | IllPosedResult):
                number += 1
                on_message(f"{counted(number)} {format_trial(row)}")


def work_left(
    trials: Sequence[BenchmarkTrial], record: BenchmarkRecord
) -> list[list[BenchmarkTrial | BenchmarkCase]]:
    """Return case by case the trials without a sound row, and the case itself where its problem is not checked."""
    by_case: dict[str, list[BenchmarkTrial]] = {}
    for trial in trials:
        by_case.setdefault(trial.case.id, []).append(trial)
    batches: list[list[BenchmarkTrial | BenchmarkCase]] = []
    for of_case in by_case.values():
        case = of_case[0].case
        known = isinstance(case, IllPosedCase) or problem_hash(case) in record.checks
        unchecked = [] if known else [cast(BenchmarkCase, case)]
        batches.append([*(trial for trial in of_case if trial.key not in record.finished), *unchecked])
    return [batch for batch in batches if batch]


def _lost(died: WorkerDied[BenchmarkTrial | BenchmarkCase]) -> TrialResult | IllPosedResult | None:
    """Return the row of a trial whose process died; a check is made again at the next start."""
    if not isinstance(died.item, BenchmarkTrial):
        return None
    case, reason = died.item.case, f"its process ended with code {died.exitcode}"
    if isinstance(case, IllPosedCase):
        return _failed_ill_posed(died.item, case, reason)
    return failed_result(died.item, reason)


def _result(folder: Path, item: BenchmarkTrial | BenchmarkCase) -> Found:
    """Run a trial, or check the problem of a case."""
    if isinstance(item, BenchmarkCase):
        return check_of(item)
    if isinstance(item.case, IllPosedCase):
        return run_ill_posed(item, item.case, folder)
    try:
        truth, accepted = _standard(item.case, folder)
    except Exception as error:  # noqa: BLE001 - a case that cannot be judged may not end the others
        return failed_result(item, f"{type(error).__name__}: {error}")
    return run_trial(item, truth, accepted, folder)


_standards: dict[str, tuple[HeldOutReference, AcceptedChain] | Exception] = {}
"""What this process judges solutions by, by the hash of the problem: a reference can take minutes, also to fail."""


def _standard(case: BenchmarkCase, folder: Path) -> tuple[HeldOutReference, AcceptedChain]:
    key = case.problem.hash
    if key not in _standards:
        try:
            _standards[key] = held_out_reference(case, folder / "references"), AcceptedChain(case.problem)
        except Exception as error:  # noqa: BLE001 - raised below, for every trial of the case
            _standards[key] = error
    found = _standards[key]
    if isinstance(found, Exception):
        raise found
    return found


def failed_result(trial: BenchmarkTrial, reason: str = "") -> TrialResult:
    """Return the row of a trial that has failed."""
    arm, case, style = trial.arm, trial.case, trial.statement.style
    assert isinstance(case, BenchmarkCase), "the problem is well posed"
    team = (arm.label, arm.policy, arm.team, arm.error_rate)
    return TrialResult(trial.key, *team, case.id, case.category, style, trial.seed, "failed", reason)


def _failed_ill_posed(trial: BenchmarkTrial, case: IllPosedCase, reason: str = "") -> IllPosedResult:
    expected: Literal["question", "refusal"] = "question" if case.verdict == "clarify" else "refusal"
    about = (trial.arm.label, case.id, case.kind, trial.statement.style, trial.seed)
    return IllPosedResult(trial.key, *about, expected, "failed", reason)


def run_ill_posed(trial: BenchmarkTrial, case: IllPosedCase, folder: Path) -> IllPosedResult:
    """Run a trial on a problem that cannot be solved as it stands, or resume it, and say what the team did."""
    failed = _failed_ill_posed(trial, case)
    try:
        session = run_session(folder / "sessions" / case.id / trial.statement.style, trial.settings)
    except Exception as error:  # noqa: BLE001 - an error becomes a failed row, and ends no other
        return replace(failed, reason=f"{type(error).__name__}: {error}")
    costs = _costs(read_run(session.folder).effects)
    return replace(
        failed,
        outcome=outcome_of(session),
        reason=session.course.reason,
        **{name: costs[name] for name in ("calls", "prompt_tokens", "completion_tokens")},
    )


def outcome_of(session: SessionResult) -> IllPosedOutcome:
    """Return what a team did with a problem that is ill posed as it is stated.

    Who solves one that is well posed has put into it what the statement does not say.
    """
    match session.course.ending:
        case "needs_clarification":
            return "question"
        case "rejected":
            return "refusal"
        case "unsolved":
            return "gave up"
    found = session.problem
    return "invented" if found and diagnose(to_yaml(found), "found").verdict == "solve" else "solved wrongly"


def run_trial(
    trial: BenchmarkTrial, truth: HeldOutReference, accepted: AcceptedChain, folder: Path
) -> TrialResult:
    """Run a trial in its folder, or resume it, and score it; an error becomes a failed row, and ends no other."""
    try:
        return _scored(trial, truth, accepted, folder / "sessions" / trial.case.id / trial.statement.style)
    except Exception as error:  # noqa: BLE001 - as the docstring says
        return failed_result(trial, f"{type(error).__name__}: {error}")


def _scored(
    trial: BenchmarkTrial, truth: HeldOutReference, accepted: AcceptedChain, folder: Path
) -> TrialResult:
    session = run_session(folder, trial.settings)
    memory, found = session.course.memory, session.problem
    solution = session.solution.solution if session.solution else None
    # A program says nothing of the problem that it is for: it is asked for values in the case's own coordinates.
    posed = accepted.problem if trial.arm.policy in PROGRAMS else found
    try:
        known = score(accepted.problem, truth, posed, solution) if posed and solution else Score()
    except ToolError:  # a program that fails on other points than those on which it was tried
        known = Score()
    process = accepted.process(memory, found)
    return replace(
        failed_result(trial, session.course.reason),
        ending=session.course.ending,
        solved=known.solved,
        error=known.error,
        maximum=known.maximum,
        matched_by_position=known.matched_by_position,
        failed_checks=failed_checks(memory),
        figures=process.figures,
        parameters=process.parameters.share,
        parameter_errors=tuple(map(str, process.parameters.wrong[:_ERRORS])),
        **_costs(read_run(session.folder).effects),
    )


def failed_checks(memory: GraphMemory) -> int:
    """Return how many findings are not passed, and steps have failed, in the end."""
    records = [record for step in memory.plan.ids if (record := memory.current(step))]
    findings = [finding for record in records for finding in record.findings]
    return sum(record.failed for record in records) + sum(not finding.passed for finding in findings)


def _costs(effects: Mapping[str, EffectRecord]) -> dict[str, Any]:
    """Return what a trial took by its journal, interruptions left out."""
    chats = [effect for effect in effects.values() if effect.kind == "chat"]
    usage = sum((ChatReply.from_json(effect.reply).usage for effect in chats), TokenUsage())
    paths = [path.partition("/retry-")[0] for path in effects]
    numbered = [path.rpartition("-") for path in dict.fromkeys(paths)]
    return {
        "calls": len(chats),
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "seconds": sum(float(effect.meta["seconds"]) for effect in effects.values()),
        "tool_calls": sum(effect.kind == "tool_call" for effect in effects.values()),
        "corrections": sum(name.endswith("/parameters") and int(number) > 1 for name, _, number in numbered),
        "plans": sum(name == "plan" for name, _, _ in numbered),
    }


def check_of(case: BenchmarkCase) -> WellPosednessCheck:
    """Return the verdict of the deterministic check of a case."""
    from sharp.problems import check_well_posedness

    grave = [concern for concern in check_well_posedness(case.problem) if concern.verdict != "warn"]
    verdict = next((concern.verdict for concern in grave if concern.verdict == "reject"), "clarify")
    reason = "; ".join(concern.message for concern in grave)
    return WellPosednessCheck(case.problem.hash, case.id, verdict if grave else "solve", reason)


def format_trial(row: TrialResult | IllPosedResult) -> str:
    """Return a row as a line of progress."""
    if isinstance(row, IllPosedResult):
        told = f" ({row.reason[:120]})" if row.outcome == "failed" else ""
        return f"{row.case}, {row.arm}: {row.outcome}{told}; right is a {row.expected}; {row.calls} calls"
    error = "no solution" if row.error is None else f"error {row.error:.1e}"
    verdict = "within tolerance" if row.solved else "not solved"
    reason = f" ({row.reason[:120]})" if row.ending == "failed" else ""
    return (
        f"{row.case}, {row.arm}: ends {row.ending}{reason}; {verdict}, {error}; "
        f"{row.calls} calls, {row.prompt_tokens + row.completion_tokens} tokens, {row.seconds:.1f} s"
    )
