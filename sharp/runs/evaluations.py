"""What the runs of a program came to, for people: a light view of a run's journal and of its task folders."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hpc.journal import EffectRecord, RunRecord
from sharp.document import error_text


@dataclass(frozen=True)
class ProgramRun:
    """One finished evaluation. `job` is known where it ran in one of Slurm, `error` where it was scored.

    `outcome` says in words what came of it.

    `started` is ISO 8601 (UTC), `seconds` the time from asking to the answer, waiting included; `folder` holds
    its files, if they are still there.
    """

    path: str
    candidate: str
    split: str
    node: str
    job: str | None
    cached: bool
    started: str
    seconds: float
    failure: str | None
    message: str
    traceback: str
    error: float | None
    outcome: str
    stdout: str
    stderr: str
    folder: str | None
    code: str


def program_runs(record: RunRecord) -> tuple[ProgramRun, ...]:
    """Return all evaluations that have finished, in order."""
    done = [effect for effect in record.effects.values() if effect.kind == "evaluate"]
    writers = {e.request["code"]: candidate_of(e.path) for e in done if not e.path.startswith("finalize/")}
    return tuple(_run(record.run_dir, effect, writers) for effect in done)


def candidates_of(runs: Iterable[ProgramRun]) -> tuple[str, ...]:
    """Return the programs that were run, each once, in order."""
    return tuple(dict.fromkeys(run.candidate for run in runs))


def runs_by_job(runs: Iterable[ProgramRun]) -> Mapping[str, int]:
    """Return how many evaluations each job of Slurm has done."""
    return Counter(run.job for run in runs if run.job is not None and not run.cached)


def candidate_of(path: str) -> str:
    """Return the id of the program that a path such as `cycle-1/round-2/h1.2.3/debug-1/validation` runs."""
    *_, parent, last, _split = path.split("/")
    return f"{parent}d{last.removeprefix('debug-')}" if last.startswith("debug-") else last


def outcome_text(reply: Mapping[str, Any]) -> str:
    """Return in words what came of an evaluation: its failure, its order of accuracy, or its error."""
    if reply["failure"]:
        return f"failed: {reply['failure']['kind']}"
    if reply.get("convergence"):
        order = reply["convergence"]["order"]
        return "no order of accuracy" if order is None else f"order of accuracy {order:.2f}"
    scores = reply["scores"] or {}
    return known_error(*map(scores.get, ("nrmse_reference", "nrmse", "residual"))) or "done"


def known_error(
    reference: float | None, data: float | None, residual: float | None, *, every: bool = False
) -> str:
    """Return an error with what it is against: the best that is known, or `every` one; empty without any."""
    known = {
        "the reference solution": reference,
        "the data set": data,
        "its equations (residual)": residual if data is None else None,
    }
    texts = [f"{error_text(value)} against {what}" for what, value in known.items() if value is not None]
    return ", ".join(texts if every else texts[:1])


def _run(run_dir: Path, effect: EffectRecord, writers: Mapping[str, str]) -> ProgramRun:
    request, reply = effect.request, effect.reply
    failure, environment = reply["failure"] or {}, reply["environment"]
    folder = run_dir / "tasks" / effect.key[:16]
    return ProgramRun(
        path=effect.path,
        candidate=writers.get(request["code"]) or effect.path.rpartition("/")[2],
        split=request["split"] if request["study"] == "score" else request["study"],
        node=environment.get("hostname", ""),
        job=environment.get("job"),
        cached=bool(environment.get("cached")),
        started=effect.meta["started"],
        seconds=effect.meta["seconds"],
        failure=failure.get("kind"),
        message=failure.get("message", ""),
        traceback=failure.get("traceback", ""),
        error=reply["scores"]["nrmse"] if reply["scores"] else None,
        outcome=outcome_text(reply),
        stdout=reply["stdout"],
        stderr=reply["stderr"],
        folder=str(folder) if folder.is_dir() else None,
        code=request["code"],
    )
