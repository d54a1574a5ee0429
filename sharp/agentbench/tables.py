"""The tables of a benchmark, and its figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from sharp.agentbench.fixed import Alarm
from sharp.agentbench.metrics.floors import Floor
from sharp.agentbench.rows import Check, Row
from sharp.agentbench.summary import (
    COSTS,
    PARAMETERS,
    Outcome,
    Runs,
    against_first,
    by_group,
    chain_figures,
    costs,
    outcomes,
    passes,
    solved_by_all,
)
from sharp.report.blocks import Figure, Table
from sharp.report.panels import Bar, BarPanel, Panels
from sharp.report.text import MISSING, clip, error_text, number_text, one_line, share_text

_SHOWN = ("node F1", "edge F1", "edit", "structure", "completeness")
_TEMPLATE = "fixed template"


def outcome_table(runs: Runs) -> Table:
    """Return how often each arm solves, and how well, on the first run of each case."""
    common = len(solved_by_all(runs))
    columns = (
        *("arm", "cases", "solved", "Pass@1", "95 % interval", "not solved", "claimed, not solved"),
        *("asked or refused", "failed", "median error, own solved", "mean error, own solved"),
        f"median error, the {common} solved by all",
    )
    rows = tuple(_outcome(each) for each in outcomes(runs))
    return Table(columns, rows, columns[1:], "By the held-out set, first run of each case")


def _outcome(each: Outcome) -> tuple[str, ...]:
    share = each.share
    return (
        each.arm,
        str(each.cases),
        str(each.solved),
        f"{share.share:.1%}",
        f"{share.low:.1%} to {share.high:.1%}",
        f"{1 - share.share:.1%}",
        str(each.claimed),
        str(each.asked),
        str(each.failed),
        *map(error_text, (each.median, each.mean, each.common)),
    )


def group_table(runs: Runs, title: str, group: Callable[[Row], str]) -> Table:
    """Return how many cases of each group each arm has solved."""
    rows = tuple(
        (name, *(_of(found.get(arm)) for arm in runs)) for name, found in by_group(runs, group).items()
    )
    return Table((title, *runs), rows, tuple(runs), "Solved cases of all, first run of each")


def _of(counts: tuple[int, int] | None) -> str:
    return MISSING if counts is None else f"{counts[0]} of {counts[1]}"


def paired_table(runs: Runs) -> Table:
    """Return every arm against the first, case by case."""
    first = next(iter(runs))
    columns = (f"against {first}", "pairs", "both", "it alone", "the first alone", "neither", "p")
    rows = tuple(
        (
            arm,
            str(each.both + each.first_only + each.second_only + each.neither),
            *map(str, (each.both, each.first_only, each.second_only, each.neither)),
            number_text(each.p_value),
        )
        for arm, each in against_first(runs).items()
    )
    return Table(columns, rows, columns[1:], "Cases solved in pairs, and McNemar's exact test")


def cost_table(runs: Runs) -> Table:
    """Return what a course takes on average."""
    columns = ("arm", "runs", *COSTS)
    rows = tuple((arm, str(len(rows)), *_costs(rows)) for arm, rows in runs.items())
    return Table(columns, rows, columns[1:], "Means over all runs that did not fail")


def _costs(rows: Sequence[Row]) -> Iterator[str]:
    found = costs(rows)
    for name in COSTS:
        yield MISSING if found is None else _cost_text(found[name])


def _cost_text(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.2f}"


def chain_table(runs: Runs, floor: Mapping[str, Floor], names: Sequence[str]) -> Table:
    """Return the figures of tool chains beside those of a fixed answer."""
    found = {arm: chain_figures(rows, names) for arm, rows in runs.items()}
    columns = ("figure", *runs, "other case's chain, mean", f"{_TEMPLATE}, best")
    rows = tuple(
        (
            name,
            *(MISSING if each is None else f"{each[name]:.3f}" for each in found.values()),
            *([f"{floor[name].mean:.3f}", f"{floor[name].best:.3f}"] if name in floor else [MISSING] * 2),
        )
        for name in (PARAMETERS, *names)
    )
    return Table(columns, rows, columns[1:], "Means over all runs that did not fail")


def chain_figure(runs: Runs, floor: Mapping[str, Floor]) -> Figure:
    """Return bars of the chain figures by arm, with the fixed template below."""
    found = {arm: chain_figures(rows, _SHOWN) for arm, rows in runs.items()}
    panels = tuple(
        BarPanel(
            name,
            (
                *(_bar(arm, None if each is None else each[name]) for arm, each in found.items()),
                *([_bar(_TEMPLATE, floor[name].best)] if name in floor else []),
            ),
            "count",
        )
        for name in (PARAMETERS, *_SHOWN)
    )
    told = "; ".join(
        f"{panel.title}: " + ", ".join(f"{bar.label} {number_text(bar.median)}" for bar in panel.bars)
        for panel in panels
    )
    drawing = Panels("chains", "Figures of tool chains", "from 0 to 1", panels, middle="mean")
    return Figure(drawing, "Tool chains and parameters of each arm; 1 is as specified.", f"{told}.")


def _bar(label: str, value: float | None) -> Bar:
    return Bar(label, () if value is None else (value,), value, remark="" if value is not None else "failed")


def passes_table(runs: Runs) -> Table | None:
    """Return Pass@k of each arm, None where every case has one run."""
    found = {arm: passes(rows) for arm, rows in runs.items()}
    most = max(map(len, found.values()))
    if most < 2:
        return None
    columns = ("arm", *(f"Pass@{k}" for k in range(1, most + 1)))
    rows = tuple(
        (arm, *(f"{value:.1%}" for value in values), *[MISSING] * (most - len(values)))
        for arm, values in found.items()
    )
    return Table(columns, rows, columns[1:], "Runs with other seeds, mean over cases")


def unsolved_table(runs: Runs) -> Table:
    """Return every run that did not solve its case, with what it said."""
    columns = ("case", "arm", "style", "seed", "ends", "error", "reason")
    rows = tuple(
        (
            row.case,
            arm,
            row.style,
            str(row.seed),
            row.ending,
            error_text(row.error),
            clip(one_line(row.reason), 200),
        )
        for arm, rows in runs.items()
        for row in rows
        if not row.solved
    )
    return Table(columns, rows, ("seed", "error"))


def alarm_table(found: Sequence[Alarm], checks: Sequence[Check]) -> Table:
    """Return how the deterministic check does on problems that are ill-posed, and on those that are not."""
    columns = ("problems", "number", "right", "share", "right, and the kind named")
    rows = []
    for verdict in ("ask", "refuse"):
        due = [alarm for alarm in found if alarm.expected == verdict]
        right, named = sum(alarm.right for alarm in due), sum(alarm.named for alarm in due)
        rows.append(_alarms(f"ill-posed, right is to {verdict}", len(due), right, str(named)))
    sound = sum(check.verdict == "solve" for check in checks)
    rows.append(_alarms("well-posed, right is to solve", len(checks), sound, MISSING))
    return Table(columns, tuple(rows), columns[1:], "The deterministic check of specifications")


def _alarms(name: str, count: int, right: int, named: str) -> tuple[str, ...]:
    return (name, str(count), str(right), share_text(right / count if count else None), named)
