"""What a finished run says of its method: how errors came down, how programs were written, what nominees cost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from math import inf, isfinite
from statistics import fmean, median

from hpc.records import EffectRecord
from sharp.config import RunConfig
from sharp.evaluation.code import library_shares
from sharp.evaluation.protocol import Evaluation
from sharp.llm.cards import ModelCard
from sharp.report.evidence import root_of
from sharp.stages.state import Entry, Execution, Tournament
from sharp.sweeps.row import Course

_WRITTEN = ("genesis", "search")  # origins of programs that are neither a judge's hybrid nor a repair


def roles(config: RunConfig) -> dict[str, str]:
    """Return which model plays each role of a run, the judges by number."""
    models = config.models
    if config.method != "pde-sharp":
        rater = config.cepo.rating_model if config.method == "cepo" else None
        return {"generator": models.generator, **({"rater": rater} if rater else {})}
    judges = models.judges if config.synthesis.mode == "tournament" else ()
    return {
        "analyst": models.analyst,
        **({"writer": models.writer} if config.analysis.written else {}),
        "generator": models.generator,
        **{f"judge {number}": name for number, name in enumerate(judges, start=1)},
        "reporter": models.reporter,
    }


def played_by_playbook(cards: Iterable[ModelCard]) -> str:
    """Return whether the playbook plays `all`, `some` or `none` of the models."""
    kinds = {card.kind == "playbook" for card in cards}
    return "some" if len(kinds) == 2 else "all" if True in kinds else "none"


def best_after(runs: Iterable[Execution]) -> Course:
    """Return the best metric so far after each run; None as long as there is none."""
    return tuple(_falling(run.metric for run in runs))


def round_best(entries: Iterable[Entry]) -> Course:
    """Return the best metric of the turns of each round, in order; None where all failed."""
    rounds: dict[tuple[int, int], list[float]] = defaultdict(list)
    for entry in entries:
        rounds[entry.cycle, entry.round].append(entry.metric)
    return tuple(_known(min(metrics)) for _, metrics in sorted(rounds.items()))


def paid_runs(state: Tournament) -> tuple[Execution, ...]:
    """Return the runs of programs before the test, without the results that an equal program lent."""
    return tuple(run for run in state.executions if run.split != "test" and run.served_from is None)


def programs(state: Tournament) -> dict[str, str]:
    """Return each program that was run, by the name it was written under, and its last version."""
    return {root_of(run.candidate): run.candidate for run in paid_runs(state)}


def strategies(state: Tournament) -> dict[str, int]:
    """Return the number of programs by strategy, without hybrids and repairs."""
    written = (each.strategy for each in state.candidates.values() if each.origin in _WRITTEN)
    return dict(sorted(Counter(written).items()))


def libraries(state: Tournament) -> dict[str, float]:
    """Return each library's share of calls, as the mean over the programs that were run and call any (R66)."""
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
    first = evaluation.run_time_s if evaluation else None
    if evaluation is None or first is None or not evaluation.repeat_times_s:
        return first, None
    steady = median(evaluation.repeat_times_s)
    return steady, max(0.0, first - steady)


def order_of_accuracy(effects: Mapping[str, EffectRecord]) -> tuple[float | None, str]:
    """Return the winner's order of accuracy, or None and why there is none."""
    effect = effects.get("finalize/convergence")
    if effect is None:
        return None, "not measured"
    failure, study = effect.reply["failure"], effect.reply["convergence"]
    if study is None:
        return None, f"failed: {failure['kind']}" if failure else "not measured"
    return study["order"], study["note"]


def _falling(metrics: Iterable[float]) -> Iterator[float | None]:
    best = inf
    for metric in metrics:
        best = min(best, metric) if isfinite(metric) else best
        yield _known(best)


def _known(metric: float) -> float | None:
    return metric if isfinite(metric) else None
