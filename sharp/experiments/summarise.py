"""From the record of a run to its summary."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from math import inf, isfinite
from statistics import fmean
from typing import Any

from hpc.journal import EffectRecord, RunRecord, canonical_json
from sharp.config import RunConfig
from sharp.evaluation import Evaluation, library_shares
from sharp.experiments.run_summary import BestErrors, RunSummary, State
from sharp.llm import RULE_BASED, CallTotals, ModelCard, is_cached
from sharp.report import ReportData, elapsed, flag_of, root_of
from sharp.runs import RunDirectory, ledger_of, paid_ledger
from sharp.tournament import Execution, JudgeTurn, Tournament, distinct

_WRITTEN = ("genesis", "search")  # origins of programs that are neither a judge's hybrid nor a repair
# What may differ between runs that repeat each other: results do not depend on it, or only by chance.
_REPEATED: Any = {
    **dict.fromkeys(("seed", "budget", "problem"), True),
    "models": {"servers"},
    "genesis": {"replay_from", "replay_repairs"},
    "evaluation": {"cache", "workers"},
}


def summarise(
    run: RunDirectory,
    effects: Mapping[str, EffectRecord],
    state: Tournament | None,
    how: State,
    note: str = "",
) -> RunSummary:
    """Return the row of a run; without a `state` the run has not ended, and only its cost is known."""
    paid, every = paid_ledger(run, effects), ledger_of(effects.values(), run.cards)
    runs = [record for record in effects.values() if record.kind == "evaluate"]
    options, usage = run.config.evaluation, every.total.usage
    row = RunSummary(
        state=how,
        note=note,
        problem=run.problem.id,
        method=run.config.method,
        variant=_variant(run.config),
        seed=run.config.seed,
        setup=_hash(run.config.model_dump(mode="json", exclude=_REPEATED)),
        roles=roles(run.config),
        rule_based=rule_based_share(run.cards.values()),
        devices=tuple(name for name, _ in Counter(map(_device, runs)).most_common()),
        feedback=run.config.feedback.metrics,
        target=run.config.target,
        evaluations=every.evaluations,
        cached_evaluations=every.cached_evaluations,
        executions=every.executions,
        debug_runs=every.runs.get("debug", 0),
        repairs=every.by_purpose.get("debug", CallTotals()).calls,
        calls=paid.total.calls,
        reused_calls=every.total.calls - paid.total.calls,
        prompt_tokens=paid.total.usage.prompt,
        completion_tokens=paid.total.usage.completion,
        dollars=paid.total.dollars,
        evaluation_seconds=sum(every.seconds.values()),
        gpu_seconds=_seconds(r for r in runs if _on_gpu(r) and not is_cached(r.reply)),
        standalone_prompt_tokens=usage.prompt,
        standalone_cached_tokens=usage.cached,
        standalone_completion_tokens=usage.completion,
        standalone_reasoning_tokens=usage.reasoning,
        standalone_dollars=every.total.dollars,
        standalone_evaluation_seconds=_seconds(runs),
        standalone_gpu_seconds=_seconds(filter(_on_gpu, runs)),
        failures=dict(Counter(r.reply["failure"]["kind"] for r in runs if r.reply["failure"])),
        effects=len(effects),
        validation_samples=options.validation,
        test_samples=options.test,
        data=run.manifest["data"]["label"],
        software=run.manifest["software"],
        prompts=_hash(dict(run.manifest["prompts"])),
    )
    evidence = ReportData(
        run, state or Tournament(run.problem.label), RunRecord(run.path, effects, (), None, ())
    )
    row = replace(row, seconds=elapsed(evidence))
    return row if state is None else _with_results(row, evidence)


def with_test_scores(row: RunSummary, test: Evaluation | None) -> RunSummary:
    """Add the errors of a test run, if it has any."""
    scores = test.scores if test else None
    if scores is None:
        return row
    flag = flag_of(scores.nrmse, scores.data_error)
    return replace(
        row,
        nrmse=scores.nrmse,
        nrmse_reference=scores.nrmse_reference,
        data_error=scores.data_error,
        flag=flag,
    )


def _with_results(row: RunSummary, evidence: ReportData) -> RunSummary:
    """Add what a run that has ended has found, and how."""
    state = evidence.state
    validation, winner = evidence.scores_of(state.best), evidence.winner
    run_time, compile_time = steady_time(state.test)
    order, order_note = order_of_accuracy(evidence.record.effects)
    nominees = nominee_sources(state)
    first = [item for item in state.candidates.values() if item.origin == "genesis"]
    last = state.saturations[-1].reason if state.saturations else ""
    return replace(
        with_test_scores(row, state.test),
        winner=state.best,
        winner_strategy=winner.strategy if winner else None,
        validation_nrmse=evidence.error_of(validation),
        run_time_s=run_time,
        compile_s=compile_time,
        device=str(state.test.environment.get("device", "cpu")) if state.test else "",
        order=order,
        order_note=order_note,
        rounds=len({(entry.cycle, entry.round) for entry in state.entries}),
        cycles=len({entry.cycle for entry in state.entries}),
        saturated=last.startswith("saturated") if last else None,
        stop_reason=last,
        best_by_evaluation=best_by_evaluation(evidence.validations),
        best_by_round=best_by_round(state.entries),
        programs=len(programs(state)),
        written=len(first),
        distinct=len(distinct(first, evidence.run.problem.interface.function)),
        nominee_evaluations=nominees.total(),
        nominee_cached=nominees["cached"],
        nominee_shared=nominees["shared"],
        strategies=strategies(state),
        libraries=libraries(state),
        winner_libraries=library_shares(winner.code) if winner else {},
    )


def roles(config: RunConfig) -> dict[str, str]:
    """Return the model of each role of a run, the judges by number."""
    models = config.models
    generator = ", ".join(models.authors)
    if config.method != "pde-sharp":
        rater = config.cepo.rating_model if config.method == "cepo" else None
        return {"generator": generator, **({"rater": rater} if rater else {})}
    judges = models.judges if config.synthesis.mode == "tournament" else ()
    return {
        "analyst": models.analyst,
        **({"writer": models.writer} if config.analysis.written else {}),
        "generator": generator,
        **{f"judge {number}": name for number, name in enumerate(judges, start=1)},
        "reporter": models.reporter,
    }


def rule_based_share(cards: Iterable[ModelCard]) -> str:
    """Return whether the rule-based model answers for `all`, `some` or `none` of the models."""
    kinds = {card.kind == RULE_BASED for card in cards}
    return "some" if len(kinds) == 2 else "all" if True in kinds else "none"


def best_by_evaluation(runs: Iterable[Execution]) -> BestErrors:
    """Return the best metric so far after each run; None as long as there is none."""
    return tuple(_falling(run.metric for run in runs))


def best_by_round(entries: Iterable[JudgeTurn]) -> BestErrors:
    """Return the best metric of the turns of each round, in order; None where all failed."""
    rounds: dict[tuple[int, int], list[float]] = defaultdict(list)
    for entry in entries:
        rounds[entry.cycle, entry.round].append(entry.metric)
    return tuple(_known(min(metrics)) for _, metrics in sorted(rounds.items()))


def programs(state: Tournament) -> dict[str, str]:
    """Return each program that was run before the test, by the name it was written under, and its last version.

    Results that an equal program lent do not count.
    """
    runs = (run for run in state.executions if run.split != "test" and run.reused_from is None)
    return {root_of(run.candidate): run.candidate for run in runs}


def strategies(state: Tournament) -> dict[str, int]:
    """Return the number of programs by strategy, without hybrids and repairs."""
    written = (each.strategy for each in state.candidates.values() if each.origin in _WRITTEN)
    return dict(sorted(Counter(written).items()))


def libraries(state: Tournament) -> dict[str, float]:
    """Return each library's share of calls, as the mean over the programs that were run and call any."""
    texts = (state.candidates[name].code for name in programs(state).values())
    shares = [share for share in map(library_shares, texts) if share]
    names = sorted({name for share in shares for name in share})
    return {name: fmean(share.get(name, 0.0) for share in shares) for name in names}


def nominee_sources(state: Tournament) -> Counter[str]:
    """Return how many nominees' results were `measured`, `cached`, or `shared` with an equal program of the run."""
    asked: set[tuple[int, str]] = set()
    sources: Counter[str] = Counter()
    for entry in state.entries:
        if entry.action == "nominee" and entry.candidate is not None:
            place = (entry.cycle, entry.candidate)
            run = state.execution_of(entry.candidate)
            here = run is not None and run.path.startswith(f"cycle-{entry.cycle}/round-{entry.round}/")
            cached = run is not None and run.evaluation.environment.get("cached")
            sources["shared" if place in asked or not here else "cached" if cached else "measured"] += 1
            asked.add(place)
    return sources


def steady_time(evaluation: Evaluation | None) -> tuple[float | None, float | None]:
    """Return the seconds of a call once compiled (median), and how much longer the first took, as far as known."""
    steady = evaluation.steady_time_s if evaluation else None
    if evaluation is None or steady is None or not evaluation.repeat_times_s:
        return steady, None
    return steady, max(0.0, (evaluation.run_time_s or 0.0) - steady)


def order_of_accuracy(effects: Mapping[str, EffectRecord]) -> tuple[float | None, str]:
    """Return the winner's order of accuracy, or None and why there is none."""
    effect = effects.get("finalize/convergence")
    if effect is None:
        return None, "not measured"
    failure, study = effect.reply["failure"], effect.reply["convergence"]
    if study is None:
        return None, f"failed: {failure['kind']}" if failure else "not measured"
    return study["order"], study["note"]


def _variant(config: RunConfig) -> str:
    mode = config.synthesis.mode
    return f"pde-sharp, {mode}" if config.method == "pde-sharp" and mode != "tournament" else config.method


def _hash(value: Any) -> str:
    return sha256(canonical_json(value).encode()).hexdigest()[:12]


def _on_gpu(run: EffectRecord) -> bool:
    return bool(run.reply["environment"].get("device", "cpu") != "cpu")


def _device(run: EffectRecord) -> str:
    """Return the device of a program run; processors by their name, because times depend on it."""
    environment = run.reply["environment"]
    device = str(environment.get("device", "cpu"))
    return f"{device} ({environment['cpu']})" if device == "cpu" and environment.get("cpu") else device


def _seconds(runs: Iterable[EffectRecord]) -> float:
    """Return the seconds that programs ran; cached results count with the time of the original run."""
    return float(sum(run.reply["total_s"] for run in runs))


def _falling(metrics: Iterable[float]) -> Iterator[float | None]:
    best = inf
    for metric in metrics:
        best = min(best, metric) if isfinite(metric) else best
        yield _known(best)


def _known(metric: float) -> float | None:
    return metric if isfinite(metric) else None
