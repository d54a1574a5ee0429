"""Runs of every method side by side: finished, stopped, without a result, on different problems and data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from sharp.config import Method
from sharp.document import Panels, render_markdown, render_terminal
from sharp.experiments.comparison import (
    Comparison,
    best_error_figure,
    break_evens,
    build_report,
    compare,
    comparison_overview,
    cost_figure,
    has_error,
    notes,
)
from tests.helpers.experiments.recorded_runs import World, record

METHODS: dict[str, dict[str, Any]] = {
    "codepde": {},
    "codepde-refine": {"refine": {"parents": [1, 2], "generations": 1}},
    "cot-reflection": {},
    "moa": {},
    "cepo": {"cepo": {"best_of": 2, "plans": 1, "attempts": 2}},
    "funsearch": {"funsearch": {"initial": 2, "iterations": 3, "islands": 1}},
    "aide": {"aide": {"steps": 3, "drafts": 2}},
    "pde-sharp": {"synthesis": {"max_cycles": 1, "max_rounds": 3}},
}
COUNTED = {
    # Calls and evaluations, with four candidates, by the table of docs/explanations/accounting.md.
    "codepde": (4, 4),
    "codepde-refine": (4 + 2, 4 + 2),
    "cot-reflection": (4, 4),
    "moa": (4 * 5, 4),
    "cepo": (4 * (2 * (2 * 1 + 2) + 2), 4),
    "funsearch": (2 + 3, 2 + 3),
    "aide": (3, 3),
}
NO_PROGRAM_RUNS = World(crashes=lambda _: True)
FAILS_IN_THE_END = World(crashes=lambda request: request.split == "test")
ONCE = {"synthesis": {"repairs": 0}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("methods")
    for method, options in METHODS.items():
        record(folder / method, method, **options)
    record(folder / "nothing", world=NO_PROGRAM_RUNS, **ONCE)
    record(folder / "failed", world=FAILS_IN_THE_END)
    return folder


@pytest.fixture(scope="module")
def every(folder: Path) -> Comparison:
    return compare([folder / method for method in METHODS])


def entries(folder: Path, *names: str) -> Comparison:
    return compare([folder / name for name in names])


def said(group: Comparison) -> str:
    return " ".join(notes(group))


def elsewhere(group: Comparison, *numbers: int) -> Comparison:
    """The same, some of its runs on another problem."""
    rows = group.rows.copy()
    rows.loc[rows["number"].isin(numbers), "problem"] = "burgers"
    return Comparison(rows, group.cards)


def test_no_method_is_left_out() -> None:
    assert set(METHODS) == set(get_args(Method)) == {*COUNTED, "pde-sharp"}


@pytest.mark.parametrize("method", COUNTED)
def test_calls_and_evaluations_of_a_method_are_those_of_its_definition(
    every: Comparison, method: str
) -> None:
    (run,) = (run for run in every.runs if run["variant"] == method)
    assert (run["all_calls"], run["evaluations"]) == COUNTED[method]
    assert run["standalone_prompt_tokens"] == 100 * run["all_calls"]
    assert run["total_dollars"] == pytest.approx(0.001 * run["all_calls"])
    assert run["executions"] == 2 * run["evaluations"]
    assert has_error(run)
    assert run["nrmse"] == min(error for error in run["best_by_evaluation"] if error is not None)
    assert (run["rounds"], run["cycles"]) == (0, 0)


def test_the_page_has_a_row_a_spot_and_a_curve_for_every_method(every: Comparison) -> None:
    page = render_markdown(build_report(every))
    assert "8 runs of 1 problem; advection: lowest error 1.000e-03 (#8 pde-sharp" in page
    for number, method in enumerate(METHODS, start=1):
        assert page.count(f"| {number} ") == 4, method
    cost, course = cost_figure(every), best_error_figure(every)
    assert cost is not None
    assert course is not None
    assert isinstance(cost.chart, Panels)
    assert isinstance(course.chart, Panels)
    assert [spot.label for panel in cost.chart.panels for spot in panel.spots] == [  # type: ignore[union-attr]
        f"#{number}" for number in range(1, 9)
    ]
    curves = [curve for panel in course.chart.panels for curve in panel.curves]  # type: ignore[union-attr]
    assert [(curve.name, len(curve.points)) for curve in curves] == [
        (run["variant"], run["evaluations"]) for run in every.runs
    ]


def test_methods_without_judges_have_a_break_even_too(every: Comparison) -> None:
    found = break_evens(every)
    assert list(found) == list(range(2, 9))
    assert found[7].saved_evaluations == 4 - 3
    words = render_terminal(*comparison_overview(every))
    assert "#7 aide: 1 evaluation saved against #1 codepde at no more dollars" in words
    assert (
        "#5 cepo: no evaluations saved against #1 codepde: spending more on language models does not pay"
        in words
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_any_method_can_be_read_before_its_end(tmp_path: Path, method: str) -> None:
    found = compare([record(tmp_path / "run", method, World(effects=3), **METHODS[method])])
    (run,) = found.runs
    assert (run["state"], has_error(run), run["nrmse"]) == ("unfinished", False, None)
    assert run["all_calls"] + run["executions"] == 3
    assert "#1 run is not finished: its errors and costs are those so far." in said(found)


def test_a_run_that_found_nothing_says_so_and_saves_nothing(folder: Path) -> None:
    group = entries(folder, "codepde", "nothing", "aide")
    nothing = group.runs[1]
    assert (nothing["state"], nothing["winner"], nothing["evaluations"]) == ("finished", None, 0)
    assert "#2 nothing has no error: none of its programs ran." in said(group)
    assert list(break_evens(group)) == [3]
    figure = cost_figure(group)
    assert figure is not None
    assert figure.caption.endswith("Not drawn, for they have no error on test data: #2 nothing.")


def test_a_winner_that_fails_on_test_data_is_told_from_none(folder: Path) -> None:
    group = entries(folder, "codepde", "failed")
    assert group.runs[1]["winner"] == "c004"
    assert "#2 failed has no error: its winner failed on test data." in said(group)
    assert break_evens(group) == {}


@pytest.mark.parametrize("first", ["nothing", "failed"])
def test_where_the_first_run_has_no_error_it_is_said_why_there_is_no_break_even(
    folder: Path, first: str
) -> None:
    group = entries(folder, first, "codepde")
    assert break_evens(group) == {}
    assert f"There is no break-even, for #1 {first}, the first of these runs, has no error" in said(group)
    assert "There is no break-even" not in said(entries(folder, first))
    assert "Break-even\n" not in render_terminal(*comparison_overview(group))


def test_each_problem_has_its_own_first_run(folder: Path) -> None:
    words = render_terminal(
        *comparison_overview(elsewhere(entries(folder, "codepde", "aide", "nothing", "moa"), 3, 4))
    )
    there = words.index("\nburgers\n")
    assert "saved against #1 codepde" in words[:there]
    assert "There is no break-even, for #3 nothing, the first of these runs" in words[there:]


def test_methods_on_other_data_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    runs = [
        record(tmp_path / "a", "aide", **METHODS["aide"]),
        record(tmp_path / "b", world=World(data="data@2")),
    ]
    found = compare(runs)
    assert build_report(found).headline.sentence == "2 runs of 1 problem."
    assert "The data sets differ, so that errors are not comparable (data@1: #1; data@2: #2)." in said(found)


def test_only_runs_that_differ_in_the_seed_alone_make_one_curve(tmp_path: Path) -> None:
    runs = [record(tmp_path / str(seed), seed=seed, budget={"calls": 99 + seed}) for seed in (0, 1)]
    longer = record(tmp_path / "longer", genesis={"candidates": 6})
    figure = best_error_figure(compare([*runs, longer]))
    assert figure is not None
    assert isinstance(figure.chart, Panels)
    (panel,) = figure.chart.panels
    names = [(curve.name, len(curve.points)) for curve in panel.curves]  # type: ignore[union-attr]
    assert names == [("codepde (#1, #2)", 4), ("codepde (#3)", 6)]


def test_cells_of_a_sweep_of_methods_are_named_by_what_they_are(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    (sweep / "runs").mkdir(parents=True)
    (sweep / "sweep.yaml").write_text("name: methods\n")
    for method in ("codepde", "aide"):
        record(sweep / "runs" / f"{method}-s0", method, **METHODS[method])
    record(sweep / "runs" / "moa-s0", "moa", World(effects=4))
    found = compare([sweep])
    assert [(run["name"], run["variant"], run["state"]) for run in found.runs] == [
        ("aide-s0", "aide", "finished"),
        ("codepde-s0", "codepde", "finished"),
        ("moa-s0", "moa", "unfinished"),
    ]
    assert list(break_evens(found)) == [2]
