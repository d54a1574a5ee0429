"""What the cells that are left will need, before anything is asked or submitted, with the assumptions behind it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from math import ceil
from typing import Any

from hpc.slurm.profile import Cluster
from sharp.config import RunConfig
from sharp.llm.cards import Purpose
from sharp.llm.estimate import Estimate, Span, estimate
from sharp.llm.hosting import is_hosted
from sharp.report.text import plural
from sharp.runs.plan import prices_of, size_of
from sharp.sweeps.cells import Cell
from sharp.sweeps.graph import Share
from sharp.sweeps.library import Library
from sharp.sweeps.plan import SweepPlan

# Where nothing has been measured yet: the share of its limit of time that a run takes.
_SHARE_OF_LIMIT = 0.1
_NOTHING = Span(0, 0)


@dataclass(frozen=True)
class SweepEstimate:
    """What is left to be done: `dollars` None where a model has no price; `jobs` and `gpu_hours` None off clusters.

    GPU-hours are those of evaluations; those of servers of models depend on how long they are kept.
    """

    cells: int
    calls: Span
    shared_calls: Span
    prompt_tokens: Span
    completion_tokens: Span
    dollars: Span | None
    evaluations: Span
    evaluation_hours: Span
    jobs: Span | None
    gpu_hours: Span | None
    assumptions: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class _Part:
    calls: Span
    shared: Span
    prompt: Span
    completion: Span
    dollars: Span | None
    evaluations: Span
    seconds: Span


def estimate_sweep(plan: SweepPlan, library: Library, cluster: Cluster | None) -> SweepEstimate:
    """Return what the cells that are not finished need; of those that have begun, all is counted."""
    estimator = _Estimator(library, _measured_seconds(plan))
    parts = [estimator.part(cell, plan.shares.get(cell.id)) for cell in plan.left]
    evaluations, seconds = _sum(part.evaluations for part in parts), _sum(part.seconds for part in parts)
    prices = [part.dollars for part in parts]
    known = [price for price in prices if price is not None]
    return SweepEstimate(
        cells=len(parts),
        calls=_sum(part.calls for part in parts),
        shared_calls=_sum(part.shared for part in parts),
        prompt_tokens=_sum(part.prompt for part in parts),
        completion_tokens=_sum(part.completion for part in parts),
        dollars=_sum(known) if len(known) == len(prices) else None,
        evaluations=evaluations,
        evaluation_hours=_times(seconds, 1 / 3600),
        jobs=None if cluster is None else _jobs(evaluations, cluster, _served(plan, library)),
        gpu_hours=None if cluster is None else _times(seconds, cluster.role("evaluate").gpus / 3600),
        assumptions=(*estimator.assumptions(), *_cluster_assumptions(cluster)),
    )


def estimate_in_words(guess: SweepEstimate) -> list[str]:
    """Return the estimate as lines for a person."""
    unknown = f"  {'dollars':18} unknown: a model has no price"
    cluster = [
        _line(name, span)
        for name, span in (("jobs", guess.jobs), ("GPU-hours", guess.gpu_hours))
        if span is not None
    ]
    return [
        f"Estimate for {guess.cells} {'cell' if guess.cells == 1 else 'cells'}: expected, and at most",
        _line("calls", guess.calls),
        _line("  taken from others", guess.shared_calls),
        _line("prompt tokens", guess.prompt_tokens),
        _line("completion tokens", guess.completion_tokens),
        unknown if guess.dollars is None else _line("dollars", guess.dollars),
        _line("evaluations", guess.evaluations),
        _line("  hours of them", guess.evaluation_hours),
        *cluster,
        "Assumptions",
        *(f"  - {text}" for text in guess.assumptions),
    ]


class _Estimator:
    """Estimates cells; the same sizes and prices once."""

    def __init__(self, library: Library, seconds: Mapping[str, float]) -> None:
        self._library = library
        self._seconds = seconds
        self._assumptions: dict[str, None] = {}
        self._estimate = cache(estimate)

    def part(self, cell: Cell, share: Share | None) -> _Part:
        """Return what a cell needs, less what another gives it."""
        guess = self._estimate(size_of(cell.config))
        self._assumptions |= dict.fromkeys(guess.assumptions)
        given = _given(cell.config, share, guess)
        rest = _less(guess, given)
        prices = prices_of(cell.config, self._library.cards_of(cell.config))
        return _Part(
            calls=_sum(rest.calls.values()),
            shared=_sum(_times(span, given.get(purpose, 0)) for purpose, span in guess.calls.items()),
            prompt=_sum(rest.prompt_tokens.values()),
            completion=_sum(rest.completion_tokens.values()),
            dollars=rest.dollars(prices),
            evaluations=guess.evaluations,
            seconds=guess.evaluations * self._span_of_seconds(cell.config),
        )

    def assumptions(self) -> tuple[str, ...]:
        """Return the assumptions in words."""
        guessed = f"{_SHARE_OF_LIMIT:.0%} of its limit of time"
        measured = f"as long as those of this sweep so far, else {guessed}" if self._seconds else guessed
        return (
            *self._assumptions,
            f"an evaluation takes {measured}; at most all of it",
            "evaluations that an earlier run has measured are not run again, and are counted here",
        )

    def _span_of_seconds(self, config: RunConfig) -> Span:
        problem = self._library.problem_of(config)
        most = config.evaluation.wall_s or problem.limits.wall_s
        return Span(min(most, self._seconds.get(problem.id, _SHARE_OF_LIMIT * most)), most)


def _given(config: RunConfig, share: Share | None, guess: Estimate) -> dict[Purpose, float]:
    """Return the share of the calls for each purpose that another cell gives."""
    if share is None:
        return {}
    if share.stage == "analysis":
        return {"analysis": 1.0}
    given: dict[Purpose, float] = {"analysis": 1.0, "genesis": share.candidates / config.sampled}
    if share.stage == "best-of-n":
        # Without repairs each program is evaluated once, those that a search writes later included.
        given["debug"] = share.candidates / guess.evaluations.expected
    return given


def _less(guess: Estimate, given: Mapping[Purpose, float]) -> Estimate:
    def rest(spans: Mapping[Purpose, Span]) -> dict[Purpose, Span]:
        return {purpose: _times(span, 1 - given.get(purpose, 0)) for purpose, span in spans.items()}

    calls, prompt, completion = map(rest, (guess.calls, guess.prompt_tokens, guess.completion_tokens))
    return Estimate(calls, prompt, completion, guess.evaluations, guess.assumptions)


def _measured_seconds(plan: SweepPlan) -> dict[str, float]:
    """Return the mean seconds of an execution by problem, of the cells that are finished."""
    runs, seconds = defaultdict[str, int](int), defaultdict[str, float](float)
    for cell in plan.cells:
        row = plan.record.rows.get(cell.id)
        if row is not None and row.evaluation_seconds > 0:
            runs[cell.config.problem] += max(1, row.executions - row.cached_evaluations)
            seconds[cell.config.problem] += row.evaluation_seconds
    return {problem: seconds[problem] / runs[problem] for problem in runs}


def _served(plan: SweepPlan, library: Library) -> int:
    """Count the models that jobs would have to serve."""
    cards = library.cards_asked(cell.config for cell in plan.left)
    return sum(map(is_hosted, cards))


def _jobs(evaluations: Span, cluster: Cluster, served: int) -> Span:
    """Count a controller, servers, and elements that take `pack` evaluations each."""
    others = 1 + served * cluster.serving.replicas
    elements = (evaluations.expected, evaluations.most)
    expected, most = (others + ceil(count / cluster.dispatch.pack) for count in elements)
    return Span(expected, most)


def _cluster_assumptions(cluster: Cluster | None) -> tuple[str, ...]:
    if cluster is None:
        return ()
    return (
        f"jobs: a controller, servers, and one for every {plural(cluster.dispatch.pack, 'evaluation')}; jobs that stay "
        "for more make it fewer, hand-over at walltime more",
        "GPU-hours: those of evaluations alone; servers hold theirs as long as they are kept",
    )


def _sum(spans: Iterable[Span]) -> Span:
    return sum(spans, _NOTHING)


def _times(span: Span, factor: float) -> Span:
    return Span(span.expected * factor, span.most * factor)


def _line(name: str, span: Span) -> str:
    return f"  {name:18} {_number(span.expected):>14} {_number(span.most):>14}"


def _number(value: float) -> str:
    return f"{round(value):,}" if value >= 100 else f"{value:.3g}"
