"""Runs of every method side by side: finished, stopped, without a result, on different problems and data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from recorded_runs import World, record

from sharp.comparison.collect import collect
from sharp.comparison.entry import Entry
from sharp.comparison.figure import cost_figure, course_figure
from sharp.comparison.notes import notes
from sharp.comparison.page import compose
from sharp.comparison.pairs import break_evens
from sharp.comparison.words import in_words
from sharp.config import Method
from sharp.report.markdown import render_markdown
from sharp.report.panels import Panels

METHODS: dict[str, dict[str, Any]] = {
    "codepde": {},
    "codepde-refine": {"refine": {"seeds": [1, 2], "generations": 1}},
    "cot-reflection": {},
    "moa": {},
    "cepo": {"cepo": {"best_of": 2, "plans": 1, "attempts": 2}},
    "funsearch": {"funsearch": {"initial": 2, "iterations": 3, "islands": 1}},
    "aide": {"aide": {"steps": 3, "drafts": 2}},
    "pde-sharp": {"synthesis": {"max_cycles": 1, "max_rounds": 3}},
}
COUNTED = {
    # Calls and evaluations, with four candidates, by the table of docs/accounting.md.
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
def every(folder: Path) -> tuple[Entry, ...]:
    return collect([folder / method for method in METHODS])


def entries(folder: Path, *names: str) -> tuple[Entry, ...]:
    return collect([folder / name for name in names])


def said(*group: Entry) -> str:
    return " ".join(notes(group))


def test_no_method_is_left_out() -> None:
    assert set(METHODS) == set(get_args(Method)) == {*COUNTED, "pde-sharp"}


@pytest.mark.parametrize("method", COUNTED)
def test_calls_and_evaluations_of_a_method_are_those_of_its_definition(
    every: tuple[Entry, ...], method: str
) -> None:
    (entry,) = (entry for entry in every if entry.variant == method)
    assert (entry.calls, entry.row.evaluations) == COUNTED[method]
    assert entry.usage.prompt == 100 * entry.calls
    assert entry.dollars == pytest.approx(0.001 * entry.calls)
    assert entry.row.executions == 2 * entry.row.evaluations
    assert entry.has_error
    assert entry.row.nrmse == min(error for error in entry.row.best_after if error is not None)
    assert (entry.row.rounds, entry.row.cycles) == (0, 0)


def test_the_page_has_a_row_a_spot_and_a_curve_for_every_method(every: tuple[Entry, ...]) -> None:
    page = render_markdown(compose(every))
    assert "8 runs of 1 problem; advection: lowest error 1.000e-03 (#8 pde-sharp" in page
    for number, method in enumerate(METHODS, start=1):
        assert page.count(f"| {number} ") == 4, method
    cost, course = cost_figure(every), course_figure(every)
    assert cost is not None
    assert course is not None
    assert isinstance(cost.drawing, Panels)
    assert isinstance(course.drawing, Panels)
    assert [spot.label for panel in cost.drawing.panels for spot in panel.spots] == [  # type: ignore[union-attr]
        f"#{number}" for number in range(1, 9)
    ]
    curves = [curve for panel in course.drawing.panels for curve in panel.curves]  # type: ignore[union-attr]
    assert [(curve.name, len(curve.points)) for curve in curves] == [
        (entry.variant, entry.row.evaluations) for entry in every
    ]


def test_methods_without_judges_have_a_break_even_too(every: tuple[Entry, ...]) -> None:
    found = break_evens(every)
    assert list(found) == list(range(2, 9))
    assert found[7].saved_evaluations == 4 - 3
    words = in_words(every)
    assert "#7 aide: 1 evaluation saved against #1 codepde at no more dollars" in words
    assert (
        "#5 cepo: no evaluations saved against #1 codepde: spending more on language models does not pay"
        in words
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_run_of_any_method_can_be_read_before_its_end(tmp_path: Path, method: str) -> None:
    (entry,) = collect([record(tmp_path / "run", method, World(effects=3), **METHODS[method])])
    assert (entry.row.state, entry.has_error, entry.row.nrmse) == ("unfinished", False, None)
    assert entry.calls + entry.row.executions == 3
    assert "#1 run is not finished: its errors and costs are those so far." in said(entry)


def test_a_run_that_found_nothing_says_so_and_saves_nothing(folder: Path) -> None:
    group = entries(folder, "codepde", "nothing", "aide")
    nothing = group[1]
    assert (nothing.row.state, nothing.row.winner, nothing.row.evaluations) == ("finished", None, 0)
    assert "#2 nothing has no error: none of its programs ran." in said(*group)
    assert list(break_evens(group)) == [3]
    figure = cost_figure(group)
    assert figure is not None
    assert figure.caption.endswith("Not drawn, for they have no error on test data: #2 nothing.")


def test_a_winner_that_fails_on_test_data_is_told_from_none(folder: Path) -> None:
    group = entries(folder, "codepde", "failed")
    assert group[1].row.winner == "c004"
    assert "#2 failed has no error: its winner failed on test data." in said(*group)
    assert break_evens(group) == {}


@pytest.mark.parametrize("first", ["nothing", "failed"])
def test_where_the_first_run_has_no_error_it_is_said_why_there_is_no_break_even(
    folder: Path, first: str
) -> None:
    group = entries(folder, first, "codepde")
    assert break_evens(group) == {}
    assert f"There is no break-even, for #1 {first}, the first of these runs, has no error" in said(*group)
    assert "There is no break-even" not in said(group[0])
    assert "Break-even\n" not in in_words(group)


def test_each_problem_has_its_own_first_run(folder: Path) -> None:
    one, two, three, four = entries(folder, "codepde", "aide", "moa", "nothing")
    elsewhere = tuple(replace(entry, row=replace(entry.row, problem="burgers")) for entry in (four, three))
    words = in_words((one, two, *elsewhere))
    there = words.index("\nburgers\n")
    assert "saved against #1 codepde" in words[:there]
    assert "There is no break-even, for #4 nothing, the first of these runs" in words[there:]


def test_methods_on_other_data_are_not_ranked_against_each_other(tmp_path: Path) -> None:
    runs = [
        record(tmp_path / "a", "aide", **METHODS["aide"]),
        record(tmp_path / "b", world=World(data="data@2")),
    ]
    found = collect(runs)
    assert compose(found).verdict.sentence == "2 runs of 1 problem."
    assert "The data sets differ, so that errors are not comparable (data@1: #1; data@2: #2)." in said(*found)


def test_only_runs_that_differ_in_the_seed_alone_make_one_curve(tmp_path: Path) -> None:
    runs = [record(tmp_path / str(seed), seed=seed, budget={"calls": 99 + seed}) for seed in (0, 1)]
    longer = record(tmp_path / "longer", genesis={"candidates": 6})
    figure = course_figure(collect([*runs, longer]))
    assert figure is not None
    assert isinstance(figure.drawing, Panels)
    (panel,) = figure.drawing.panels
    names = [(curve.name, len(curve.points)) for curve in panel.curves]  # type: ignore[union-attr]
    assert names == [("codepde (#1, #2)", 4), ("codepde (#3)", 6)]


def test_cells_of_a_sweep_of_methods_are_named_by_what_they_are(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    (sweep / "runs").mkdir(parents=True)
    (sweep / "sweep.yaml").write_text("name: methods\n")
    for method in ("codepde", "aide"):
        record(sweep / "runs" / f"{method}-s0", method, **METHODS[method])
    record(sweep / "runs" / "moa-s0", "moa", World(effects=4))
    found = collect([sweep])
    assert [(entry.name, entry.variant, entry.row.state) for entry in found] == [
        ("aide-s0", "aide", "finished"),
        ("codepde-s0", "codepde", "finished"),
        ("moa-s0", "moa", "unfinished"),
    ]
    assert list(break_evens(found)) == [2]
