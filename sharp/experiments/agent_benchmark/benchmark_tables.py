"""The tables of a benchmark and its figure, from a frame of trials with the short name of each one's arm.

Tests and intervals take the first run of each case, for runs of one case are not independent. Errors are told of
solved cases alone, always beside the share that is not solved. Costs and figures of tool chains are means over all
runs but those that failed for the machinery's fault.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import comb
from statistics import fmean
from typing import Any

from pandas import DataFrame, Series
from scipy.stats import binomtest

from sharp.document import Bar, BarPanel, Figure, Panels, Table
from sharp.document.text import MISSING, clip, error_text, number_text, one_line
from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.structure import ConstantBaseline
from sharp.experiments.tables import Column, groups, number, table, text

PARAMETERS = "parameter accuracy"
COSTS = {
    "calls": "calls",
    "prompt_tokens": "prompt tokens",
    "completion_tokens": "completion tokens",
    "tokens": "tokens",
    "seconds": "seconds",
    "tool_calls": "uses of tools",
    "corrections": "corrections",
    "plans": "plans",
}
_TEMPLATE = "fixed template"
_SHOWN = ("node F1", "edge F1", "edit", "structure", "completeness")


def first_runs(trials: DataFrame) -> DataFrame:
    """Return the first run of each case by each arm."""
    return trials.drop_duplicates(["arm", "case"])


def solved_by_all(trials: DataFrame) -> frozenset[str]:
    """Return the cases that every arm has solved in its first run."""
    solved = [set(runs.loc[runs["solved"], "case"]) for _, runs in groups(first_runs(trials), ["arm"])]
    return frozenset(set.intersection(*solved)) if solved else frozenset()


def arm_summary(trials: DataFrame) -> DataFrame:
    """Return for each arm, on the first run of each case, how often it solves and how well.

    `low` and `high` are the ends of Wilson's interval of the share solved; `false_success` counts trials that ended as
    solved and are not, `asked` those that asked or refused, `failed` faults of the machinery. `mean_error` and
    `median_error` are over the arm's own solved cases, `common_error` is the median over those that all arms solved.
    """
    common = solved_by_all(trials)
    rows = []
    for (arm,), runs in groups(first_runs(trials), ["arm"]):
        solved = runs[runs["solved"]]
        low, high = wilson_interval(len(solved), len(runs))
        rows.append(
            {
                "arm": arm,
                "cases": len(runs),
                "solved": len(solved),
                "share": len(solved) / len(runs),
                "low": low,
                "high": high,
                "false_success": int(((runs["ending"] == "solved") & ~runs["solved"]).sum()),
                "asked": int(runs["ending"].isin(["needs_clarification", "rejected"]).sum()),
                "failed": int((runs["ending"] == "failed").sum()),
                "mean_error": solved["error"].mean(),
                "median_error": solved["error"].median(),
                "common_error": solved.loc[solved["case"].isin(common), "error"].median(),
            }
        )
    return DataFrame(rows)


def wilson_interval(successes: int, trials: int) -> tuple[float, float]:
    """Return the interval of a share at 95 % (Wilson, Journal of the American Statistical Association 22, 1927)."""
    found = binomtest(successes, trials).proportion_ci(0.95, "wilson")
    return float(found.low), float(found.high)


def outcome_table(trials: DataFrame) -> Table:
    """Return how often each arm solves, and how well, on the first run of each case."""
    columns = (
        text("arm"),
        number("cases"),
        number("solved"),
        Column("Pass@1", lambda row: f"{row['share']:.1%}"),
        Column("95 % interval", lambda row: f"{row['low']:.1%} to {row['high']:.1%}"),
        Column("not solved", lambda row: f"{1 - row['share']:.1%}"),
        number("claimed, not solved", "false_success"),
        number("asked or refused", "asked"),
        number("failed"),
        number("median error, own solved", "median_error", error_text),
        number("mean error, own solved", "mean_error", error_text),
        number(f"median error, the {len(solved_by_all(trials))} solved by all", "common_error", error_text),
    )
    return table(arm_summary(trials), columns, "By the held-out set, first run of each case")


def solved_by_group(trials: DataFrame, group: str) -> DataFrame:
    """Return by group and arm how many cases were solved in their first run there (`sum`), and how many there are."""
    firsts = trials.drop_duplicates(["arm", group, "case"])
    return firsts.groupby([group, "arm"], sort=False)["solved"].agg(["sum", "size"])


def group_table(trials: DataFrame, group: str) -> Table:
    """Return how many cases of each group each arm has solved."""
    found, arms = solved_by_group(trials, group), tuple(trials["arm"].unique())

    def of(name: str, arm: str) -> str:
        if (name, arm) not in found.index:
            return MISSING
        return "{sum} of {size}".format(**found.loc[(name, arm)])

    rows = tuple((name, *(of(name, arm) for arm in arms)) for name in trials[group].unique())
    return Table((group, *arms), rows, arms, "Solved cases of all, first run of each")


def paired_table(trials: DataFrame) -> Table:
    """Return every arm against the first, by the exact McNemar test over the cases that both have."""
    solved = first_runs(trials).set_index(["arm", "case"])["solved"]
    first, *others = trials["arm"].unique()
    columns = (f"against {first}", "pairs", "both", "it alone", "the first alone", "neither", "p")
    rows = []
    for arm in others:
        one, other = solved[arm].align(solved[first], join="inner")
        counts = [int((one.eq(it) & other.eq(they)).sum()) for it in (True, False) for they in (True, False)]
        both, it_alone, first_alone, neither = counts
        counts = [len(one), both, it_alone, first_alone, neither]
        rows.append((arm, *map(str, counts), number_text(mcnemar_test(it_alone, first_alone))))
    return Table(columns, tuple(rows), columns[1:], "Cases solved in pairs, and McNemar's exact test")


def mcnemar_test(first_only: int, second_only: int) -> float:
    """Return the p-value of McNemar's test (Psychometrika 12, 1947) from the cases that one of two alone solved.

    In its exact form it is the sign test of these. Runs of one case are no independent pairs: count one of each.
    """
    return float(binomtest(first_only, first_only + second_only).pvalue) if first_only + second_only else 1.0


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """Return the unbiased estimate of the probability that one of k runs of a case passes.

    1 - C(n - c, k)/C(n, k) for c of n runs (Chen et al., Evaluating Large Language Models Trained on Code, arXiv
    2107.03374, eq. 1). Raises `DataError` unless 0 <= passed <= runs and 1 <= k <= runs: fewer runs than k have no
    such estimate.
    """
    if not 0 <= passed <= runs:
        raise DataError(f"expected from 0 to {runs} runs that passed, found {passed}")
    if not 1 <= k <= runs:
        raise DataError(f"Pass@{k}: expected k from 1 to the number of runs of a case, {runs}")
    return 1 - comb(runs - passed, k) / comb(runs, k)


def _without_failed(trials: DataFrame) -> DataFrame:
    return trials[trials["ending"] != "failed"]


def mean_costs(trials: DataFrame) -> DataFrame:
    """Return the means of each cost by arm, over all runs that did not fail, with their number as `runs`."""
    runs = trials.groupby("arm", sort=False).size().rename("runs")
    known = trials.assign(tokens=trials["prompt_tokens"] + trials["completion_tokens"])
    means = _without_failed(known).groupby("arm", sort=False)[list(COSTS)].mean()
    return DataFrame(runs).join(means).reset_index()


def cost_table(trials: DataFrame) -> Table:
    """Return what a trial takes on average."""
    columns = (
        text("arm"),
        number("runs"),
        *(number(title, name, _cost_text) for name, title in COSTS.items()),
    )
    return table(mean_costs(trials), columns, "Means over all runs that did not fail")


def _cost_text(value: float | None) -> str:
    return MISSING if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def chain_scores(trials: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return by arm the means of the scores of tool chains, parameters first, over all runs that did not fail.

    A trial that used up its calls has left no chain, and counts as 0: leaving it out would flatter whoever gives up.
    """
    known = _without_failed(trials)
    scores = DataFrame(
        {name: [each.get(name, 0.0) for each in known["figures"]] for name in names}, known.index
    )
    scores.insert(0, PARAMETERS, known["parameters"].fillna(0.0))
    return scores.groupby(known["arm"], sort=False).mean().reindex(trials["arm"].unique())


def chain_table(trials: DataFrame, baselines: Mapping[str, ConstantBaseline], names: Sequence[str]) -> Table:
    """Return the scores of tool chains beside those of a constant answer."""
    found = chain_scores(trials, names)

    def text(value: float) -> str:
        return MISSING if value != value else f"{value:.3f}"

    def constant(name: str) -> tuple[str, str]:
        known = baselines.get(name)
        return (text(known.mean), text(known.best)) if known else (MISSING, MISSING)

    columns = ("figure", *found.index, "other case's chain, mean", f"{_TEMPLATE}, best")
    rows = tuple((name, *map(text, found[name]), *constant(name)) for name in found.columns)
    return Table(columns, rows, columns[1:], "Means over all runs that did not fail")


def chain_figure(trials: DataFrame, baselines: Mapping[str, ConstantBaseline]) -> Figure:
    """Return bars of the scores of tool chains by arm, with the constant answer below."""
    found = chain_scores(trials, _SHOWN)
    panels = tuple(_panel(name, found[name], baselines.get(name)) for name in found.columns)
    told = "; ".join(
        f"{panel.title}: " + ", ".join(f"{bar.label} {number_text(bar.median)}" for bar in panel.bars)
        for panel in panels
    )
    drawing = Panels("chains", "Figures of tool chains", "from 0 to 1", panels, middle="mean")
    return Figure(drawing, "Tool chains and parameters of each arm; 1 is as specified.", f"{told}.")


def _panel(name: str, means: Series, baseline: ConstantBaseline | None) -> BarPanel:
    template = [_bar(_TEMPLATE, baseline.best)] if baseline else []
    return BarPanel(name, (*(_bar(arm, value) for arm, value in means.items()), *template), "count")


def _bar(label: Any, value: float) -> Bar:
    return Bar(label, (), None, remark="failed") if value != value else Bar(label, (value,), value)


def passes(trials: DataFrame) -> dict[str, list[float]]:
    """Return Pass@1, Pass@2, … of each arm, as far as every case has as many runs of one style with other seeds.

    Each is the mean over cases, which count the same however often they were run.
    """
    first = first_runs(trials)[["arm", "case", "style"]]
    found = {}
    for (arm,), runs in groups(trials.merge(first, on=["arm", "case", "style"]), ["arm"]):
        cases = [(len(each), int(each.sum())) for _, each in runs.groupby("case")["solved"]]
        found[arm] = [
            fmean(pass_at_k(*case, k) for case in cases)
            for k in range(1, min(count for count, _ in cases) + 1)
        ]
    return found


def passes_table(trials: DataFrame) -> Table | None:
    """Return Pass@k of each arm, None if every case has one run."""
    found = passes(trials)
    most = max(map(len, found.values()))
    columns = ("arm", *(f"Pass@{k}" for k in range(1, most + 1)))
    rows = tuple(
        (arm, *(f"{value:.1%}" for value in values), *[MISSING] * (most - len(values)))
        for arm, values in found.items()
    )
    return Table(columns, rows, columns[1:], "Runs with other seeds, mean over cases") if most > 1 else None


def unsolved_table(trials: DataFrame) -> Table:
    """Return every run that did not solve its case, with what it said."""
    columns = (
        *(text(name) for name in ("case", "arm", "style")),
        number("seed"),
        text("ends", "ending"),
        number("error", "error", error_text),
        Column("reason", lambda row: clip(one_line(row["reason"]), 200), number=False),
    )
    return table(trials[~trials["solved"]], columns)
