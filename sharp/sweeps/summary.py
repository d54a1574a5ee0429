"""From a run to its row in a sweep's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256

from hpc.journal import RunRecord
from hpc.records import EffectRecord, canonical
from sharp.evaluation.code import library_shares
from sharp.llm.ledger import Account, is_cached
from sharp.report.evidence import Evidence
from sharp.report.marks import flag_of
from sharp.report.opening import elapsed
from sharp.runs.budget import ledger_of, paid_ledger
from sharp.runs.directory import Run
from sharp.stages.state import Tournament
from sharp.sweeps import figures
from sharp.sweeps.row import Row, State


def summarise(
    run: Run, effects: Mapping[str, EffectRecord], state: Tournament | None, how: State, note: str = ""
) -> Row:
    """Return the row of a run that rests; `state` None: it has not come to its end, and only its cost is known."""
    paid = paid_ledger(run, effects)
    every = ledger_of(effects.values(), run.cards)
    runs = [record for record in effects.values() if record.kind == "evaluate"]
    row = Row(
        state=how,
        note=note,
        problem=run.problem.id,
        method=run.config.method,
        roles=figures.roles(run.config),
        playbook=figures.played_by_playbook(run.cards.values()),
        evaluations=every.evaluations,
        cached_evaluations=every.cached_evaluations,
        executions=every.executions,
        repairs=every.by_purpose.get("debug", Account()).calls,
        calls=paid.total.calls,
        shared_calls=every.total.calls - paid.total.calls,
        prompt_tokens=paid.total.usage.prompt,
        completion_tokens=paid.total.usage.completion,
        dollars=paid.total.dollars,
        evaluation_seconds=sum(every.seconds.values()),
        gpu_seconds=_seconds(r for r in runs if _on_gpu(r) and not is_cached(r.reply)),
        whole_prompt_tokens=every.total.usage.prompt,
        whole_completion_tokens=every.total.usage.completion,
        whole_dollars=every.total.dollars,
        whole_evaluation_seconds=_seconds(runs),
        whole_gpu_seconds=_seconds(filter(_on_gpu, runs)),
        failures=dict(Counter(r.reply["failure"]["kind"] for r in runs if r.reply["failure"])),
        effects=len(effects),
        data=run.manifest["data"]["label"],
        software=run.manifest["software"],
        prompts=sha256(canonical(dict(run.manifest["prompts"])).encode()).hexdigest()[:12],
    )
    evidence = Evidence(
        run, state or Tournament(run.problem.label), RunRecord(run.path, effects, (), None, ())
    )
    row = replace(row, seconds=elapsed(evidence))
    return row if state is None else _with_results(row, evidence)


def _with_results(row: Row, evidence: Evidence) -> Row:
    """Add what a run that has come to its end has found, and how."""
    state = evidence.state
    test = state.test.scores if state.test else None
    validation = evidence.scores_of(state.best)
    winner = evidence.winner
    run_time, compile_time = figures.steady_time(state.test)
    order, order_note = figures.order_of_accuracy(evidence.record.effects)
    nominees = figures.nominee_sources(state)
    last = state.saturations[-1].reason if state.saturations else ""
    return replace(
        row,
        winner=state.best,
        winner_strategy=winner.strategy if winner else None,
        nrmse=test.nrmse if test else None,
        nrmse_truth=test.nrmse_truth if test else None,
        floor=test.floor if test else None,
        flag=flag_of(test.nrmse, test.floor) if test else "",
        validation_nrmse=validation.nrmse if validation else None,
        run_time_s=run_time,
        compile_s=compile_time,
        device=str(state.test.environment.get("device", "cpu")) if state.test else "",
        order=order,
        order_note=order_note,
        rounds=len({(entry.cycle, entry.round) for entry in state.entries}),
        cycles=len({entry.cycle for entry in state.entries}),
        saturated=last.startswith("saturated") if last else None,
        ending=last,
        best_after=figures.best_after(evidence.validations),
        round_best=figures.round_best(state.entries),
        programs=len(figures.programs(state)),
        nominee_evaluations=nominees.total(),
        nominee_cached=nominees["cached"],
        nominee_shared=nominees["shared"],
        strategies=figures.strategies(state),
        libraries=figures.libraries(state),
        winner_libraries=library_shares(winner.code) if winner else {},
    )


def _on_gpu(run: EffectRecord) -> bool:
    return bool(run.reply["environment"].get("device", "cpu") != "cpu")


def _seconds(runs: Iterable[EffectRecord]) -> float:
    """Return the seconds that programs ran, those from the cache as long as they took where they were measured."""
    return float(sum(run.reply["total_s"] for run in runs))
