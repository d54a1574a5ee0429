"""The figures of a benchmark from its rows: pure functions, and every number that its tables show.

Tests and intervals take the first run of each case, for runs of one case are not independent. Errors are told of
solved cases alone, always beside the share that is not solved. Costs and figures of tool chains are means over all
runs but those that failed for the machinery's fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from sharp.agentbench.metrics.passes import (
    PairedPasses,
    Proportion,
    compare_passes,
    mean_pass_at_k,
    wilson,
)
from sharp.agentbench.rows import Row

PARAMETERS = "parameter accuracy"

COSTS: Mapping[str, Callable[[Row], float]] = {
    "calls": lambda row: row.calls,
    "prompt tokens": lambda row: row.prompt_tokens,
    "completion tokens": lambda row: row.completion_tokens,
    "tokens": lambda row: row.tokens,
    "seconds": lambda row: row.seconds,
    "uses of tools": lambda row: row.uses,
    "corrections": lambda row: row.corrections,
    "plans": lambda row: row.plans,
}
"""What a course takes."""


@dataclass(frozen=True)
class Outcome:
    """An arm on the first run of each case.

    `claimed` counts courses that ended as solved and are not, `asked` those that asked or refused, `failed` faults of
    the machinery. `mean` and `median` are over the errors of the arm's own solved cases, `common` is the median over
    the cases that all arms have solved; None without any.
    """

    arm: str
    share: Proportion
    cases: int
    solved: int
    claimed: int
    asked: int
    failed: int
    mean: float | None
    median: float | None
    common: float | None


Runs = Mapping[str, Sequence[Row]]
"""The rows of each arm, the first run of a case before its others."""


def by_arm(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each arm, arms and rows in the order in which they come."""
    arms: dict[str, list[Row]] = {}
    for row in rows:
        arms.setdefault(row.arm, []).append(row)
    return arms


def first_runs(rows: Iterable[Row]) -> dict[str, Row]:
    """Return the first run of each case."""
    found: dict[str, Row] = {}
    for row in rows:
        found.setdefault(row.case, row)
    return found


def solved_by_all(runs: Runs) -> frozenset[str]:
    """Return the cases that every arm has solved in its first run."""
    solved = [{case for case, row in first_runs(rows).items() if row.solved} for rows in runs.values()]
    return frozenset(set.intersection(*solved)) if solved else frozenset()


def outcomes(runs: Runs) -> list[Outcome]:
    """Return what became of each arm."""
    common = solved_by_all(runs)
    return [_outcome(arm, first_runs(rows), common) for arm, rows in runs.items()]


def _outcome(arm: str, rows: Mapping[str, Row], common: Iterable[str]) -> Outcome:
    solved = {case: row.error for case, row in rows.items() if row.solved and row.error is not None}
    errors = list(solved.values())
    endings = [row.ending for row in rows.values()]
    return Outcome(
        arm,
        wilson(len(solved), len(rows)),
        len(rows),
        len(solved),
        sum(row.ending == "solved" and not row.solved for row in rows.values()),
        endings.count("asks") + endings.count("refused"),
        endings.count("failed"),
        fmean(errors) if errors else None,
        median(errors) if errors else None,
        median(solved[case] for case in common) if common else None,
    )


def by_group(runs: Runs, group: Callable[[Row], str]) -> dict[str, dict[str, tuple[int, int]]]:
    """Return by group and arm how many cases were solved in their first run there, and how many there are."""
    found: dict[str, dict[str, tuple[int, int]]] = {}
    for arm, rows in runs.items():
        groups: dict[str, list[Row]] = {}
        for row in rows:
            groups.setdefault(group(row), []).append(row)
        for name, members in groups.items():
            firsts = first_runs(members).values()
            found.setdefault(name, {})[arm] = (sum(row.solved for row in firsts), len(firsts))
    return found


def against_first(runs: Runs) -> dict[str, PairedPasses]:
    """Compare every arm with the first one by the exact McNemar test over the cases that both have."""
    passed = {arm: {case: row.solved for case, row in first_runs(rows).items()} for arm, rows in runs.items()}
    first, *others = passed
    return {arm: compare_passes(passed[arm], passed[first]) for arm in others}


def passes(rows: Sequence[Row]) -> list[float]:
    """Return Pass@1, Pass@2, … of an arm, as far as every case has as many runs with other seeds."""
    styles = {case: row.style for case, row in first_runs(rows).items()}
    runs: dict[str, list[bool]] = {}
    for row in rows:
        if row.style == styles[row.case]:
            runs.setdefault(row.case, []).append(row.solved)
    return [mean_pass_at_k(runs, k) for k in range(1, min(map(len, runs.values())) + 1)]


def costs(rows: Sequence[Row]) -> dict[str, float] | None:
    """Return the mean of each cost over all runs that did not fail, None without any."""
    played = [row for row in rows if row.ending != "failed"]
    return {name: fmean(map(cost, played)) for name, cost in COSTS.items()} if played else None


def chain_figures(rows: Sequence[Row], names: Iterable[str]) -> dict[str, float] | None:
    """Return the means of the figures of tool chains, parameters first, over all runs that did not fail.

    A course that used up its calls has left no chain, and counts as 0: leaving it out would flatter whoever gives up.
    """
    played = [row for row in rows if row.ending != "failed"]
    if not played:
        return None
    share = fmean(row.parameters or 0.0 for row in played)
    return {
        PARAMETERS: share,
        **{name: fmean(row.figures.get(name, 0.0) for row in played) for name in names},
    }
