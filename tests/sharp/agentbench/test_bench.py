"""The benchmark carried out: rows that outlive everything, processes that may die, figures recomputed by hand."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from crew_work import squares, threads

from sharp.agent.runs import Finished, run_course
from sharp.agent.settings import ROLES, Settings
from sharp.agent.team import Allowance
from sharp.agentbench import bench, course
from sharp.agentbench.bench import Piece, carry_out, check_of, pieces_of
from sharp.agentbench.cases import load_case
from sharp.agentbench.course import blank_row
from sharp.agentbench.crew import Died, shared_out
from sharp.agentbench.matrix import (
    Task,
    arms_of,
    choose_cases,
    read_models,
    short_names,
    tasks_of,
)
from sharp.agentbench.metrics.floors import Floor
from sharp.agentbench.page import Evidence, compose, table_csv
from sharp.agentbench.process import Accepted
from sharp.agentbench.rows import Check, RecordWriter, Row, read_record, record_file
from sharp.agentbench.summary import (
    PARAMETERS,
    against_first,
    by_arm,
    by_group,
    chain_figures,
    costs,
    first_runs,
    outcomes,
    passes,
    solved_by_all,
)
from sharp.agentbench.tables import chain_table, passes_table
from sharp.agentbench.truth import truth_of
from sharp.errors import ConfigurationError, SpecificationError
from sharp.report.html import render_html
from sharp.report.markdown import render_markdown

CASE = "heat-rod-two-ends"
TEAM = read_models("playbook")


@cache
def tasks(mistakes: float = 0.0) -> tuple[Task, ...]:
    arms = arms_of(["prog-act", "step-wise", "none"], [TEAM], [mistakes])
    return tasks_of(choose_cases([CASE]), arms, 1)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One case and three policies, played to the end; not to be changed."""
    folder = tmp_path_factory.mktemp("played")
    carry_out(folder, tasks(), 1)
    return folder


def test_every_course_is_played_once_and_solved(played: Path) -> None:
    record = read_record(played)
    assert set(record.rows) == {task.key for task in tasks()}
    assert all(row.solved and row.ending == "solved" for row in record.rows.values())
    assert all(row.figures["completeness"] == row.parameters == 1 for row in record.rows.values())
    assert [check.verdict for check in record.checks.values()] == ["solve"]
    assert len(list(played.glob(f"courses/{CASE}/units/course-*/journal.jsonl"))) == 3


def test_step_wise_asks_more_than_fixed_checkpoints_and_these_more_than_none(played: Path) -> None:
    calls = {row.policy: row.calls for row in read_record(played).rows.values()}
    assert calls["step-wise"] > calls["prog-act"] > calls["none"]
    rows = read_record(played).rows.values()
    assert all((row.plans, row.corrections, row.objections) == (1, 0, 0) for row in rows)
    assert all(row.uses == 15 for row in rows)


def test_what_was_played_is_not_played_again(played: Path) -> None:
    before = record_file(played).read_bytes()
    said: list[str] = []
    carry_out(played, tasks(), 1, said.append)
    assert said == []
    assert record_file(played).read_bytes() == before


def test_a_torn_row_is_made_again_from_the_courses_record(played: Path, tmp_path: Path) -> None:
    (tmp_path / "courses").symlink_to(played / "courses")
    whole = record_file(played).read_bytes()
    lines = whole.splitlines(keepends=True)
    last_row = max(number for number, line in enumerate(lines) if b'"event":"row"' in line)
    torn = b"".join([*lines[:last_row], lines[last_row][:-20]])
    record_file(tmp_path).write_bytes(torn)
    (warning,) = read_record(tmp_path).warnings
    assert warning.endswith("the last line is torn, and left out")
    said: list[str] = []
    carry_out(tmp_path, tasks(), 1, said.append)
    assert said[0] == warning
    assert [line[:5] for line in said[1:]] == ["[1/1]"]
    assert read_record(tmp_path).rows == read_record(played).rows
    assert read_record(tmp_path).warnings == ()


def test_a_damaged_row_is_left_out_and_named(played: Path, tmp_path: Path) -> None:
    lines = record_file(played).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"solved":true', b'"solved":null')
    record_file(tmp_path).write_bytes(b"".join(lines))
    record = read_record(tmp_path)
    assert record.warnings == (f"{record_file(tmp_path)}:2: damaged, and left out",)
    assert len(record.rows) == len(tasks()) - 1


def test_failed_courses_are_tried_again_and_others_are_not(tmp_path: Path) -> None:
    first, second, *_ = tasks()
    with RecordWriter(tmp_path) as writer:
        writer.add(blank_row(first, "a fault"))
        writer.add(replace(blank_row(second), ending="unsolved"))
        writer.add(check_of(first.case))
    (left,) = pieces_of([first, second], read_record(tmp_path))
    assert left == Piece(first.case, (first,), check=False)


def test_what_a_dead_process_was_at_has_failed_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    piece = Piece(tasks()[0].case, tasks()[:3], check=True)
    rows = [replace(blank_row(task), ending="solved") for task in piece.tasks]
    seen = []

    def dying_once(pieces: list[Piece], *_: object) -> list[Row | Died[Piece]]:
        seen.append(pieces)
        return [rows[0], Died(piece, 1, -9)] if len(seen) == 1 else [rows[2]]

    monkeypatch.setattr(bench, "shared_out", dying_once)
    carry_out(tmp_path, piece.tasks, 1)
    assert seen[1] == [Piece(piece.case, piece.tasks[2:], check=True)]
    endings = {key: row.ending for key, row in read_record(tmp_path).rows.items()}
    assert [endings[task.key] for task in piece.tasks] == ["solved", "failed", "solved"]
    assert read_record(tmp_path).rows[piece.tasks[1].key].reason == "its process ended with code -9"


def test_an_exception_in_a_course_is_a_failed_row_with_its_words(tmp_path: Path) -> None:
    task = replace(tasks()[0], statement=tasks()[0].statement.model_copy(update={"text": "Something else."}))
    carry_out(tmp_path, [task], 1)
    (row,) = read_record(tmp_path).rows.values()
    assert row.ending == "failed"
    assert row.reason.startswith("ModelRefused: the playbook understands no language")


def test_a_course_that_used_up_its_calls_is_scored_with_its_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(folder: Path, settings: Settings) -> Finished:
        return run_course(folder, replace(settings, allowance=Allowance(calls=5)))

    monkeypatch.setattr(course, "run_course", short)
    task = tasks()[0]
    row = course.play(task, truth_of(task.case, tmp_path), Accepted(task.case.problem), tmp_path)
    assert (row.ending, row.solved, row.calls) == ("unsolved", False, 5)
    assert row.reason == "all 5 model calls that this problem may take are used up"
    assert row.figures["node precision"] == 1
    assert 0 < row.figures["node recall"] < 1


def test_processes_share_pieces_and_one_that_dies_is_replaced() -> None:
    found = list(shared_out([2, 3, -1, 4], squares, 1))
    assert found == [2, 4, 3, Died(3, 1, 7), Died(-1, 0, 9), 4, 16]


def test_a_process_has_one_thread() -> None:
    assert list(shared_out([0], threads, 1)) == ["1"]


def test_arms_are_told_apart_by_what_differs() -> None:
    both = arms_of(["prog-act", "none"], [TEAM], [0.0, 0.2])
    assert [arm.label for arm in both] == [
        "prog-act (playbook)",
        "none (playbook)",
        "prog-act (playbook, mistakes 0.2)",
        "none (playbook, mistakes 0.2)",
    ]
    assert list(short_names(both).values())[2] == "prog-act, mistakes 0.2"
    assert list(short_names(both[:2]).values()) == ["prog-act", "none"]
    models = arms_of(["none"], [TEAM, read_models("gpt-4o")], [0.1, 0.2])
    assert [arm.label for arm in models] == [
        "none (playbook, mistakes 0.1)",
        "none (playbook, mistakes 0.2)",
        "none (gpt-4o)",
    ]


def test_roles_may_have_models_of_their_own() -> None:
    names = {role: "b" if role in ("parser", "solver") else "a" for role in ROLES}
    text = ",".join(f"{role}={name}" for role, name in names.items())
    assert read_models(text) == tuple(names.values())
    (arm,) = arms_of(["none"], [read_models(text)], [0.0])
    assert arm.team == text.replace(",", ", ")
    with pytest.raises(ConfigurationError, match="unknown role 'judge'; valid roles: orchestrator"):
        read_models("judge=a")
    with pytest.raises(ConfigurationError, match="found none for solver"):
        read_models(text.replace("solver=b", "solver="))


def test_cases_are_chosen_by_name_and_category_once() -> None:
    chosen = choose_cases(["burgers", "burgers-plane", "heat-rod-two-ends"])
    assert [case.id for case in chosen[-1:]] == ["heat-rod-two-ends"]
    assert len(chosen) == 5
    with pytest.raises(SpecificationError, match=r"did you mean 'burgers'\?"):
        choose_cases(["burger"])


def test_courses_are_of_the_first_statement_or_of_the_styles_that_are_named() -> None:
    (case,), arms = choose_cases([CASE]), arms_of(["none"], [TEAM], [0.0])
    assert [task.statement.style for task in tasks_of([case], arms, 2)] == ["units", "units"]
    assert [task.seed for task in tasks_of([case], arms, 2)] == [0, 1]
    assert [task.statement.style for task in tasks_of([case], arms, 1, ["german", "plain"])] == ["german"]
    with pytest.raises(ConfigurationError, match="has a statement in style plain"):
        tasks_of([case], arms, 1, ["plain"])
    with pytest.raises(ConfigurationError, match="unknown style 'dutch'"):
        tasks_of([case], arms, 1, ["dutch"])


def test_cases_draw_different_mistakes_and_all_arms_the_same() -> None:
    arms = arms_of(["prog-act", "none"], [TEAM], [0.2])
    courses = tasks_of(choose_cases(["burgers"]), arms, 2)
    seeds = {(task.case.id, task.seed): task.settings.seed for task in courses}
    assert len(courses) == 2 * len(seeds) == 16
    assert len(set(seeds.values())) == 8
    assert all(task.settings.seed == seeds[task.case.id, task.seed] for task in courses)


def test_a_policy_and_a_rate_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown policy 'progact'; did you mean 'prog-act'\?"):
        arms_of(["progact"], [TEAM], [0.0])
    with pytest.raises(ConfigurationError, match="no model is the playbook"):
        arms_of(["none"], [read_models("gpt-4o")], [0.2])


def test_a_key_follows_settings_and_the_problem_that_is_scored() -> None:
    task = tasks()[0]
    other = replace(task.case, problem=load_case("predator-prey-lake").problem)
    keys = {
        task.key,
        replace(task, seed=1).key,
        replace(task, case=other).key,
        replace(task, arm=replace(task.arm, mistakes=0.1)).key,
    }
    assert len(keys) == 4


# Four cases and two arms; errors, tokens and endings are round, so that every figure can be computed in the head.
def row(arm: str, case: str, error: float | None, tokens: int, **changes: object) -> Row:
    solved = error is not None and error <= 1e-3
    base = Row(f"{arm}/{case}", arm, arm, "playbook", 0.0, case, case[0], "plain", 0, "solved", "")
    known = replace(base, solved=solved, error=error, prompt_tokens=tokens, calls=tokens // 100)
    return replace(known, **{"figures": {"node F1": 0.5}, "parameters": 1.0, **changes})  # type: ignore[arg-type]


ROWS = (
    *(row("a", case, error, 100) for case, error in (("h1", 1e-6), ("h2", 3e-6), ("w1", 5e-6))),
    row("a", "w2", 0.5, 500, parameters=0.5, figures={"node F1": 1.0}),
    row("b", "h1", 2e-6, 200),
    row("b", "h2", None, 200, ending="refused", figures={}, parameters=None),
    row("b", "w1", None, 0, ending="failed", figures={}, parameters=None),
    row("b", "w2", 4e-6, 800),
)


def test_outcomes_by_hand() -> None:
    a, b = outcomes(by_arm(ROWS))
    assert (a.cases, a.solved, a.claimed, a.asked, a.failed) == (4, 3, 1, 0, 0)
    assert (b.cases, b.solved, b.claimed, b.asked, b.failed) == (4, 2, 0, 1, 1)
    assert (a.median, a.mean, a.common) == pytest.approx((3e-6, 3e-6, 1e-6))
    assert (b.median, b.mean, b.common) == pytest.approx((3e-6, 3e-6, 2e-6))
    assert solved_by_all(by_arm(ROWS)) == {"h1"}
    # Wilson's interval of 3 in 4, as textbooks have it.
    assert (a.share.low, a.share.high) == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_pairs_and_groups_by_hand() -> None:
    found = against_first(by_arm(ROWS))["b"]
    assert (found.both, found.first_only, found.second_only, found.neither) == (1, 1, 2, 0)
    assert found.p_value == 1
    groups = by_group(by_arm(ROWS), lambda each: each.category)
    assert groups == {"h": {"a": (2, 2), "b": (1, 2)}, "w": {"a": (1, 2), "b": (1, 2)}}


def test_costs_and_chains_leave_out_faults_of_the_machinery_alone() -> None:
    a, b = by_arm(ROWS).values()
    assert costs(a) == pytest.approx({**(costs(a) or {}), "tokens": 200, "calls": 2})
    assert costs(b) == pytest.approx({**(costs(b) or {}), "tokens": 400, "calls": 4})
    assert chain_figures(a, ["node F1"]) == pytest.approx({PARAMETERS: 0.875, "node F1": 0.625})
    assert chain_figures(b, ["node F1"]) == pytest.approx({PARAMETERS: 2 / 3, "node F1": 1 / 3})
    assert costs([each for each in b if each.ending == "failed"]) is None


def test_runs_with_other_seeds_give_pass_at_k_and_no_test() -> None:
    again = [replace(each, seed=1, solved=each.case != "h1") for each in ROWS if each.arm == "a"]
    runs = by_arm([*(each for each in ROWS if each.arm == "a"), *again])
    # Of two runs each: h1 once, h2, w1 twice, w2 once.
    assert passes(runs["a"]) == pytest.approx([0.75, 1.0])
    assert {case: each.seed for case, each in first_runs(runs["a"]).items()} == dict.fromkeys(
        ("h1", "h2", "w1", "w2"), 0
    )
    table = passes_table(runs)
    assert table is not None
    assert table.rows == (("a", "75.0%", "100.0%"),)
    assert passes_table(by_arm(ROWS)) is None


def test_the_floor_stands_beside_the_figures_of_chains() -> None:
    floor = {"node F1": Floor(0.25, 0.75, "h1")}
    parameters, nodes = chain_table(by_arm(ROWS), floor, ["node F1"]).rows
    assert nodes == ("node F1", "0.625", "0.333", "0.250", "0.750")
    assert parameters == (PARAMETERS, "0.875", "0.667", "–", "–")


def test_the_page_says_who_played_what_is_missing_and_what_was_published(played: Path) -> None:
    record = read_record(played)
    rows = tuple(record.rows.values())[:-1]
    checks = (*record.checks.values(), Check("x", "sound", "refuse", "an alarm that is false"))
    evidence = Evidence(tasks(), rows, checks, {}, ())
    report = compose(evidence)
    text, page = render_markdown(report), render_html(report)
    for piece in (
        "The playbook, a program that knows these cases, stood in for models in every arm.",
        "1 course not played yet",
        "not comparable with the figures above",
        "sound: an alarm that is false",
        "relative L2 error on a fixed held-out set is at most 0.001",
    ):
        assert piece in " ".join(text.split())
    assert page.count("<svg") >= 6
    assert ">mean<" in page


def test_the_csv_has_every_figure_of_every_course() -> None:
    table = list(csv.DictReader(io.StringIO(table_csv(ROWS).decode())))
    assert [line["case"] for line in table] == [each.case for each in ROWS]
    assert [line["node F1"] for line in table] == ["0.5"] * 3 + ["1.0", "0.5", "", "", "0.5"]
    assert table[5]["error"] == ""
