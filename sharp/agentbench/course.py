"""One course of the benchmark, from its settings to its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from hpc.journal import read_run
from hpc.records import EffectRecord
from sharp.agent.memory import Memory
from sharp.agent.runs import Finished, run_course
from sharp.agentbench.matrix import Task
from sharp.agentbench.process import Accepted
from sharp.agentbench.rows import Row
from sharp.agentbench.scores import Score, score
from sharp.agentbench.truth import Truth
from sharp.llm.protocol import ChatReply, Usage

_WRONG = 5  # wrong parameters that a row names


def blank_row(task: Task, reason: str = "") -> Row:
    """Return the row of a course that has failed."""
    arm, case = task.arm, task.case
    return Row(
        task.key,
        arm.label,
        arm.policy,
        arm.team,
        arm.mistakes,
        case.id,
        case.category,
        task.statement.style,
        task.seed,
        "failed",
        reason,
    )


def play(task: Task, truth: Truth, accepted: Accepted, folder: Path) -> Row:
    """Carry a course out in its folder, or go on with it, and score it; whatever is raised becomes a failed row."""
    try:
        return _played(task, truth, accepted, folder / "courses" / task.case.id / task.statement.style)
    except Exception as error:  # noqa: BLE001 - one course may never end the others
        return blank_row(task, f"{type(error).__name__}: {error}")


def _played(task: Task, truth: Truth, accepted: Accepted, folder: Path) -> Row:
    finished = run_course(folder, task.settings)
    ended = _scored(replace(blank_row(task), ending=finished.course.ending), finished, truth, accepted)
    return replace(ended, **_costs(read_run(finished.folder).effects))


def _scored(row: Row, finished: Finished, truth: Truth, accepted: Accepted) -> Row:
    memory, found = finished.course.memory, finished.problem
    solution = finished.solution.solution if finished.solution else None
    known = score(accepted.problem, truth, found, solution) if found and solution else Score()
    process = accepted.process(memory, found)
    return replace(
        row,
        reason=finished.course.reason,
        solved=known.solved,
        error=known.error,
        maximum=known.maximum,
        by_order=known.by_order,
        objections=objections(memory),
        figures=process.figures,
        parameters=process.parameters.share,
        wrong=tuple(map(str, process.parameters.wrong[:_WRONG])),
    )


def objections(memory: Memory) -> int:
    """Return how many findings are not passed, and steps have failed, as things stand."""
    records = [record for step in memory.plan.ids if (record := memory.current(step))]
    findings = [finding for record in records for finding in record.findings]
    return sum(record.failed for record in records) + sum(not finding.passed for finding in findings)


def _costs(effects: Mapping[str, EffectRecord]) -> dict[str, Any]:
    """Return what a course took by its journal, interruptions left out."""
    chats = [effect for effect in effects.values() if effect.kind == "chat"]
    usage = sum((ChatReply.from_json(effect.reply).usage for effect in chats), Usage())
    places = [path.partition("/again-")[0] for path in effects]
    numbered = [place.rpartition("-") for place in dict.fromkeys(places)]
    return {
        "calls": len(chats),
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "seconds": sum(float(effect.meta["seconds"]) for effect in effects.values()),
        "uses": sum(effect.kind == "use" for effect in effects.values()),
        "corrections": sum(name.endswith("/parameters") and int(number) > 1 for name, _, number in numbered),
        "plans": sum(name == "plan" for name, _, _ in numbered),
    }
