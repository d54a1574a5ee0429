"""What a sweep's page says of errors at the data-set error, of repeats and of pairs."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from sharp.document import (
    Block,
    Bullets,
    Details,
    Heading,
    Note,
    Paragraph,
    Report,
    Table,
    render_html,
    render_markdown,
)
from sharp.experiments.run_summary import RunSummary
from tests.helpers.experiments.made_records import Line, compose

PROBLEMS = ("advection", "burgers", "darcy", "navier-stokes", "reaction-diffusion")


def done(problem: str, error: float | None, **fields: Any) -> RunSummary:
    known: dict[str, Any] = {
        "problem": problem,
        "nrmse": error,
        "nrmse_reference": error,
        "data_error": 1e-6,
        "validation_nrmse": error,
        "best_by_evaluation": (None, error),
        "evaluations": 2,
        "executions": 5,
        "standalone_gpu_seconds": 8.0,
        "standalone_dollars": 1.0,
        "data": f"{problem}@1",
        "software": "0.1.0",
    }
    return RunSummary("finished", **{**known, **fields})


def line(method: str, problem: str, seed: int, row: RunSummary | None) -> Line:
    return Line(f"{problem}-{method}-s{seed}", {"problem": problem, "method": method, "seed": seed}, row)


def matrix(seeds: int = 3, **other: Any) -> list[Line]:
    """Two methods, of which the second halves errors but on one problem, where it makes them a thousandth."""
    lines = []
    for problem in PROBLEMS:
        gain = 1000 if problem == "reaction-diffusion" else 2
        for seed in range(seeds):
            error = 1e-2 * (1 + seed)
            lines.append(line("codepde", problem, seed, done(problem, error, evaluations=32, executions=50)))
            lines.append(
                line("pde-sharp", problem, seed, done(problem, error / gain, standalone_dollars=3.0, **other))
            )
    return lines


def section(report: Report, anchor: str) -> tuple[Block, ...]:
    found = next((each for each in report.sections if each.anchor == anchor), None)
    assert found is not None
    return found.blocks


def tables(blocks: tuple[Block, ...]) -> list[Table]:
    return [block for block in blocks if isinstance(block, Table)]


def cells(table: Table, row: int = 0) -> dict[str, str]:
    return dict(zip(table.columns, table.rows[row], strict=True))


def test_a_method_is_compared_with_the_first_over_problems_and_seeds() -> None:
    blocks = section(compose("s", "", matrix()), "paired")
    first = cells(tables(blocks)[0])
    assert (first["against codepde"], first["pairs"], first["won"], first["lost"]) == (
        "pde-sharp",
        "15",
        "15",
        "0",
    )
    assert float(first["ratio"]) == pytest.approx((0.5**4 / 1000) ** 0.2, rel=5e-3)
    assert first["these problems"] == f"{first['ratio']} – {first['ratio']}"
    assert float(first["p"]) == pytest.approx(2 / 2**15, rel=5e-3)


def test_the_geometric_mean_stands_with_and_without_each_problem() -> None:
    blocks = section(compose("s", "", matrix()), "paired")
    assert "0.5 (reaction-diffusion)" in cells(tables(blocks)[0])["without any one problem"]
    details = next(block for block in blocks if isinstance(block, Details))
    table = tables(details.blocks)[0]
    assert [row[0] for row in table.rows] == list(PROBLEMS)
    assert cells(table, 4)["overall without it"] == "0.5"


def test_evaluations_to_the_reference_s_error_and_break_even_stand_in_counts() -> None:
    blocks = section(compose("s", "", matrix()), "paired")
    reached, costs = tables(blocks)[-2:]
    assert reached.rows[0] == ("pde-sharp", "15", "15", "2", "2", "2", "2", "2")
    assert cells(costs)["evaluations"] == "30"
    assert cells(costs)["evaluations, codepde"] == "480"
    assert cells(costs)["GPU-seconds"] == "120"
    said = next(block for block in reversed(blocks) if isinstance(block, Bullets))
    assert "450 evaluations saved against codepde" in said.items[0]
    assert f"${30 / 450:.3g}" in said.items[0]
    assert "%" not in render_markdown(compose("s", "", matrix())).replace("(95 %)", "")


def test_an_error_that_most_runs_never_reach_is_never_reached() -> None:
    lines = matrix()
    worse = [
        replace(each, row=replace(each.row, best_by_evaluation=(None, 9.0), validation_nrmse=9.0, nrmse=9.0))
        if each.row is not None and each.values["method"] == "pde-sharp"
        else each
        for each in lines
    ]
    reached = tables(section(compose("s", "", worse), "paired"))[-2]
    assert reached.rows[0][1:6] == ("15", "0", "never", "never", "never")


def test_courses_of_another_measure_are_not_compared() -> None:
    lines = matrix(best_by_evaluation=(0.5, 0.1))
    captions = [table.caption for table in tables(section(compose("s", "", lines), "paired"))]
    assert not any("best validation error" in caption for caption in captions)


def test_the_rule_based_model_has_no_break_even() -> None:
    lines = [
        replace(each, row=replace(each.row, rule_based="all")) if each.row is not None else each
        for each in matrix()
    ]
    report = compose("s", "", lines)
    assert any("the rule-based model stood in" in note.text for note in report.notes)
    said = [block.text for block in section(report, "paired") if isinstance(block, Paragraph)]
    assert any("nothing can be said of break-even" in text for text in said)


def test_a_failed_run_loses_its_pair_and_is_counted_in_the_spread() -> None:
    lines = matrix()
    lines[1] = line(
        "pde-sharp", "advection", 0, done("advection", None, winner=None, best_by_evaluation=(None,))
    )
    report = compose("s", "", lines)
    first = cells(tables(section(report, "paired"))[0])
    assert (first["won"], first["lost"]) == ("14", "1")
    seeds = cells(tables(section(report, "seeds"))[0], 1)
    assert (seeds["runs"], seeds["failed"], seeds["error, range"]) == ("3", "1", "1.000e-02 – failed")


def test_cells_that_have_not_finished_pair_with_none_and_are_listed() -> None:
    lines = matrix()
    lines[1] = line("pde-sharp", "advection", 0, None)
    blocks = section(compose("s", "", lines), "paired")
    assert cells(tables(blocks)[0])["pairs"] == "14"
    notes = next(block for block in blocks if isinstance(block, Bullets))
    assert "pde-sharp: unpaired on advection: seed 0 on advection@1" in notes.items


def test_runs_on_different_data_are_no_pair() -> None:
    lines = matrix(data="other@2")
    assert not any(each.anchor == "paired" for each in compose("s", "", lines).sections)


def test_other_axes_are_compared_within_the_cases_of_the_rest() -> None:
    lines = [
        Line(
            f"{kind}-{method}-{seed}",
            {"feedback.metrics": kind, "method": method, "seed": seed},
            done("burgers", {"a": 1.0, "b": 4.0}[kind] * {"x": 1.0, "y": 3.0}[method]),
        )
        for kind in "ab"
        for method in "xy"
        for seed in range(3)
    ]
    blocks = section(compose("s", "", lines), "paired")
    assert [block.text for block in blocks if isinstance(block, Heading)] == [
        "method: against x",
        "feedback.metrics: against a",
    ]
    details = [block for block in blocks if isinstance(block, Details)]
    assert [row[0] for row in tables(details[0].blocks)[0].rows] == ["burgers · a", "burgers · b"]
    assert [row[0] for row in tables(details[2].blocks)[0].rows] == ["burgers · x", "burgers · y"]
    assert cells(tables(details[0].blocks)[0])["ratio"] == "3"


@pytest.mark.parametrize(("flag", "mark"), [("below", "‡"), ("at", "†"), ("", "")])
def test_every_error_at_or_below_the_floor_is_marked(flag: str, mark: str) -> None:
    report = compose(
        "s", "", [line("codepde", "burgers", 0, done("burgers", 2e-3, data_error=5e-3, flag=flag))]
    )
    row = cells(tables(section(report, "results"))[0])
    assert (row["error"], row["data error"]) == (f"2.000e-03{mark}", "5.000e-03")
    assert report.headline.flagged == (flag == "below")
    assert f"2.000e-03{mark} (" in report.headline.sentence


def test_medians_are_marked_by_the_floor_of_their_data() -> None:
    errors = (1e-3, 2e-3, 9e-3)
    lines = [line("codepde", "burgers", k, done("burgers", e, data_error=2e-3)) for k, e in enumerate(errors)]
    row = cells(tables(section(compose("s", "", lines), "seeds"))[0])
    assert (row["error, median"], row["error, range"]) == ("2.000e-03†", "1.000e-03‡ – 9.000e-03")


def test_pairs_at_the_floor_are_said_to_tell_nothing() -> None:
    lines = [
        replace(each, row=replace(each.row, flag="at"))
        if each.row is not None and each.values["problem"] == "reaction-diffusion"
        else each
        for each in matrix()
    ]
    notes = [block.text for block in section(compose("s", "", lines), "paired") if isinstance(block, Note)]
    assert len(notes) == 1
    assert notes[0].startswith("In 3 of 15 pairs both errors on test data are at or below the data-set error")


def test_nothing_of_the_test_data_is_shown_before_a_run_has_finished() -> None:
    row = replace(
        done("burgers", 1.234e-3, flag="below", nrmse_reference=5.678e-3), state="unfinished", winner="c077"
    )
    report = compose("s", "", [line("codepde", "burgers", 0, row)])
    text = render_markdown(report) + render_html(report)
    assert not re.search(r"1\.234|5\.678|c077", text)
    assert report.headline.sentence == "0 of 1 cell finished."
