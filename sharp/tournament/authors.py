"""Which of several models writes the next program: each in turn, or the more often the better its programs were.

Thompson sampling (Thompson, Biometrika 25, 285, 1933) for a Bernoulli bandit with uniform priors, as in Agrawal and
Goyal (COLT 2012, algorithm 1): a model with S successes and F failures so far is drawn theta ~ Beta(S + 1, F + 1), and
the one with the largest theta writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, isfinite
from random import Random
from statistics import median

from sharp.config import RunConfig
from sharp.tournament.run_context import RunContext
from sharp.tournament.state import Tournament


@dataclass(frozen=True)
class AuthorRecord:
    """How a model's programs did: those tried, those that ran, those among the better half, and the best metric.

    Tried are programs that were run, and replies that held none. The better half are those whose metric, as last
    repaired, is at most the median of all that ran.
    """

    model: str
    tried: int
    ran: int
    successes: int
    best: float


def in_turn(config: RunConfig, number: int) -> str:
    """Return the author of a program by its number, from 1."""
    models = config.models.authors
    return models[(number - 1) % len(models)]


def next_author(session: RunContext, state: Tournament, number: int) -> str:
    """Return the author of a search's step, a pure function of the configuration and of what the steps before gave."""
    config = session.config
    if config.models.allocation == "in-turn":
        return in_turn(config, number)
    rng = Random(f"{config.seed}/author/{number}")
    records = author_records(config, state)
    drawn = [rng.betavariate(one.successes + 1, one.tried - one.successes + 1) for one in records]
    return records[drawn.index(max(drawn))].model


def author_records(config: RunConfig, state: Tournament) -> list[AuthorRecord]:
    """Return the record of each model that writes programs."""
    results = [*_sampled(config, state), *_searched(state)]
    ran = [metric for _, metric in results if isfinite(metric)]
    bound = median(ran) if ran else -inf
    return [
        _record(model, [m for name, m in results if name == model], bound) for model in config.models.authors
    ]


def _record(model: str, metrics: Sequence[float], bound: float) -> AuthorRecord:
    ran = [metric for metric in metrics if isfinite(metric)]
    return AuthorRecord(model, len(metrics), len(ran), sum(m <= bound for m in ran), min(ran, default=inf))


def _sampled(config: RunConfig, state: Tournament) -> list[tuple[str, float]]:
    """Return author and metric, as last repaired, of what genesis wrote and was run; +inf if it failed or was lost."""
    metrics = {run.candidate: run.metric for run in state.executions if run.split != "test"}
    written = [item for item in state.candidates.values() if item.origin == "genesis" and item.id in metrics]
    lost = [in_turn(config, int(name[1:])) for name in state.discarded if name.startswith("c")]
    return [
        *((item.author, metrics[state.latest_version(item.id)]) for item in written),
        *((author, inf) for author in lost),
    ]


def _searched(state: Tournament) -> list[tuple[str, float]]:
    return [(step.author, step.metric) for step in state.search if step.author]
