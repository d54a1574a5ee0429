"""Where a run stands: a light view of its journal, without loading the problem, the data or zarr."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from hpc.journal import EffectRecord, RunRecord, read_run
from sharp.document import Block, Facts, Paragraph
from sharp.llm.budgets import ClusterUsage
from sharp.llm.ledger import Ledger
from sharp.runs.budget_status import BudgetStatus, allowances, is_free, recorded_ledger, worked_minutes
from sharp.runs.evaluations import candidate_of
from sharp.runs.manifest import read_manifest, search_steps


@dataclass(frozen=True)
class Status:
    """A run at a glance. `controller` says who works on it, if anyone does; errors are of validation runs.

    `dollars` is None where a call has no known price; `budgets` are those that are set.
    """

    run: str
    problem: str
    method: str
    models: tuple[str, ...]
    stage: str
    finished: bool
    controller: str | None
    calls: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float | None
    evaluations: int
    executions: int
    cached: int
    failures: Mapping[str, int]
    best: str | None
    best_nrmse: float | None
    best_nrmse_reference: float | None
    budgets: tuple[BudgetStatus, ...]
    warnings: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "budgets": [budget.to_json() for budget in self.budgets]}


def view(path: Path, spent: ClusterUsage | None = None) -> Status:
    """Look at a run, whether somebody works on it or not; `spent` is what its jobs on a cluster used, if there are any.

    Raises RunDirectoryError where there is no run.
    """
    manifest = read_manifest(path)
    record = read_run(path)
    ledger = _ledger(manifest, record)
    chats = [effect.reply for effect in record.effects.values() if effect.kind == "chat"]
    runs = [effect for effect in record.effects.values() if effect.kind == "evaluate"]
    best = _best(runs)
    return Status(
        run=str(path),
        problem=manifest["problem"]["id"],
        method=manifest["config"].get("method", "pde-sharp"),
        models=tuple(manifest["models"]),
        stage=_stage(manifest["config"], record),
        finished=bool(record.barriers) and record.barriers[-1].name == "done",
        controller=f"process {record.holder.pid} on {record.holder.host}" if record.holder else None,
        calls=len(chats),
        prompt_tokens=sum(reply["usage"]["prompt"] for reply in chats),
        completion_tokens=sum(reply["usage"]["completion"] for reply in chats),
        dollars=ledger.total.dollars if ledger else 0.0,
        evaluations=sum(effect.request["split"] == "validation" for effect in runs),
        executions=len(runs),
        cached=sum(bool(effect.reply["environment"].get("cached")) for effect in runs),
        failures=dict(Counter(e.reply["failure"]["kind"] for e in runs if e.reply["failure"])),
        best=candidate_of(best.path) if best else None,
        best_nrmse=best.reply["scores"]["nrmse"] if best else None,
        best_nrmse_reference=best.reply["scores"]["nrmse_reference"] if best else None,
        budgets=_budgets(manifest, record, ledger, spent),
        warnings=record.warnings,
    )


def status_blocks(
    status: Status, more: Iterable[tuple[str, str]] = (), following: str = ""
) -> tuple[Block, ...]:
    """Return a status for a person, with `more` facts and the next useful command (`following`, if given)."""
    return (
        Paragraph(f"{status.run}: {status.problem}, {status.stage}"),
        Facts((*_facts(status), *more)),
        Paragraph(following or _next(status)),
    )


def _facts(status: Status) -> Iterator[tuple[str, str]]:
    yield "method", status.method
    yield "models", ", ".join(status.models)
    tokens = f"{status.prompt_tokens} prompt, {status.completion_tokens} completion"
    yield "calls", f"{status.calls}, tokens: {tokens}{_cost(status)}"
    validation = f"{status.evaluations} on validation data{_cached(status)}{_failures(status)}"
    yield "runs", f"{status.executions}, of which {validation}"
    if status.best is not None and status.best_nrmse is not None:
        truth = status.best_nrmse_reference
        against = f", against reference {truth:.3e}" if truth is not None else ""
        yield "best", f"{status.best}: error {status.best_nrmse:.3e}{against}"
    if status.budgets:
        yield "budget", ", ".join(budget.in_words() for budget in status.budgets)
    yield from (("warning", text) for text in status.warnings)


def _ledger(manifest: Mapping[str, Any], record: RunRecord) -> Ledger | None:
    """Return the ledger, None where no call costs anything and no budget is set: it takes time to load what counts."""
    limits = manifest["config"]["budget"].values()
    if all(map(is_free, manifest["models"].values())) and all(limit is None for limit in limits):
        return None
    return recorded_ledger(manifest, record.effects.values())


def _budgets(
    manifest: Mapping[str, Any], record: RunRecord, ledger: Ledger | None, spent: ClusterUsage | None
) -> tuple[BudgetStatus, ...]:
    if ledger is None:
        return ()
    if _has_donors(manifest["config"]):
        ledger = recorded_ledger(manifest, _paid(manifest, record))
    return allowances(
        manifest, ledger, spent or ClusterUsage(wall_time=worked_minutes(record.effects.values()))
    )


def _has_donors(config: Mapping[str, Any]) -> bool:
    """Return whether other runs may have given answers, which count for no budget."""
    places = (("models", "replay_from"), ("genesis", "replay_from"), ("retry", "of"))
    return any(config.get(section, {}).get(key) for section, key in places)


def _paid(manifest: Mapping[str, Any], record: RunRecord) -> list[EffectRecord]:
    from sharp.config import RunConfig  # loads pydantic
    from sharp.runs.replay_sources import paid_effects

    return paid_effects(RunConfig.model_validate(manifest["config"]), record.effects.values())


def _stage(config: Mapping[str, Any], record: RunRecord) -> str:
    if not record.effects:
        return "not started"
    if record.barriers and record.barriers[-1].name == "done":
        return "finished"
    last = list(record.effects)[-1]
    written = sum(path.startswith("search/") and path.endswith("/code") for path in record.effects)
    step = f" (step {written} of {search_steps(config)})" if last.startswith("search/") else ""
    return f"at {last.rpartition('/')[0] or last}{step}"


def _best(runs: Iterable[EffectRecord]) -> EffectRecord | None:
    scored = [
        effect
        for effect in runs
        if not effect.path.startswith("finalize/")
        and effect.request["split"] == "validation"
        and effect.reply["scores"]
        and isfinite(effect.reply["scores"]["nrmse"])
    ]
    return min(scored, key=lambda effect: effect.reply["scores"]["nrmse"], default=None)


def _cost(status: Status) -> str:
    if status.dollars is None:
        return ", dollars unknown"
    return f", ${status.dollars:.4g}" if status.dollars else ""


def _cached(status: Status) -> str:
    return f"; {status.cached} from the cache" if status.cached else ""


def _failures(status: Status) -> str:
    listed = ", ".join(f"{count} {kind}" for kind, count in sorted(status.failures.items()))
    return f"; failures: {listed}" if listed else ""


def _next(status: Status) -> str:
    if status.finished:
        return f"Finished. Report: {Path(status.run) / 'report.html'}"
    if status.controller is not None:
        return f"Running: {status.controller}. Look again with: sharp watch {status.run}"
    return f"Nobody works on it. Continue with: sharp resume {status.run}"
