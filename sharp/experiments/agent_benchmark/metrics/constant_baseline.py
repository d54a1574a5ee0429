"""What a fixed answer scores: the gold tool chain of one case, given for every other case.

Tool chains of different cases are much alike, so a high score says little until it is compared with this one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from statistics import fmean

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.chains import score_chain
from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph

Accepted = Mapping[str, ChainGraph]


@dataclass(frozen=True)
class ConstantBaseline:
    """What other cases' gold chains score in one figure.

    `mean` is over all pairs of different cases, `best` the mean of the case `template` whose chain does best for the
    others: who answers with it, whatever the question, scores as much.
    """

    mean: float
    best: float
    template: str


def constant_baselines(cases: Mapping[str, Accepted]) -> dict[str, ConstantBaseline]:
    """Return the floor of every figure of `ChainScore.figures`, given the accepted chains of every case.

    The first accepted chain of a case is its template. Raises `DataError` with fewer than two cases.
    """
    if len(cases) < 2:
        raise DataError(f"a floor takes the tool chains of at least two cases, found {len(cases)}")

    @cache  # most cases share a few chains
    def figures(template: ChainGraph, accepted: tuple[tuple[str, ChainGraph], ...]) -> dict[str, float]:
        return score_chain(template, dict(accepted)).figures()

    def others(template: str) -> list[dict[str, float]]:
        chain = next(iter(cases[template].values()))
        return [figures(chain, tuple(cases[case].items())) for case in cases if case != template]

    scores = {template: others(template) for template in cases}
    names = next(iter(scores.values()))[0]
    return {
        name: _floor({case: fmean(each[name] for each in scores[case]) for case in cases}) for name in names
    }


def _floor(means: Mapping[str, float]) -> ConstantBaseline:
    """Build a floor from the mean of each template; all means are over equally many pairs."""
    template = max(means, key=lambda case: means[case])
    return ConstantBaseline(fmean(means.values()), means[template], template)
