"""The benchmark carried out: rows that outlive everything, processes that may die, figures recomputed by hand."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from subprocess import PIPE

import pytest

from sharp.agent.policies import POLICIES
from sharp.agent.sessions import SessionResult, run_session
from sharp.agent.settings import ROLES, AgentConfig
from sharp.agent.team import AgentLimits
from sharp.document import render_html, render_markdown
from sharp.errors import ConfigurationError, SpecificationError
from sharp.experiments.agent_benchmark import runner
from sharp.experiments.agent_benchmark.benchmark_report import (
    PARAMETERS,
    BenchmarkReportData,
    arm_summary,
    build_report,
    chain_scores,
    chain_table,
    first_runs,
    mean_costs,
    paired_table,
    passes,
    passes_table,
    publish_benchmark,
    solved_by_all,
    solved_by_group,
    trial_frame,
)
from sharp.experiments.agent_benchmark.chain_scoring import AcceptedChain
from sharp.experiments.agent_benchmark.held_out import held_out_reference
from sharp.experiments.agent_benchmark.metrics.structure import ConstantBaseline
from sharp.experiments.agent_benchmark.process_pool import WorkerDied, map_unordered
from sharp.experiments.agent_benchmark.published import published_tables
from sharp.experiments.agent_benchmark.runner import (
    check_of,
    failed_result,
    run_benchmark,
    run_trial,
    work_left,
)
from sharp.experiments.agent_benchmark.trials import (
    BenchmarkTrial,
    ResultsWriter,
    TrialResult,
    WellPosednessCheck,
    arms_of,
    choose_cases,
    list_trials,
    log_file,
    read_models,
    read_record,
    short_names,
)
from sharp.experiments.frame import plain_rows
from sharp.problems.cases import BenchmarkCase, list_cases, load_case
from tests.helpers import finding_helpers
from tests.helpers.experiments.pool_work import square, threads

CASE = "heat-rod-two-ends"
TEAM = read_models("rule-based")


@cache
def tasks(error_rate: float = 0.0) -> tuple[BenchmarkTrial, ...]:
    arms = arms_of(["prog-act", "step-wise", "none"], [TEAM], [error_rate])
    return list_trials(choose_cases([CASE]), arms, 1)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One case and three policies, played to the end; not to be changed."""
    folder = tmp_path_factory.mktemp("played")
    run_benchmark(folder, tasks(), 1)
    return folder


def test_every_course_is_played_once_and_solved(played: Path) -> None:
    record = read_record(played)
    assert set(record.rows) == {task.key for task in tasks()}
    assert all(row.solved and row.ending == "solved" for row in record.rows.values())
    assert all(row.figures["completeness"] == row.parameters == 1 for row in record.rows.values())
    assert [check.verdict for check in record.checks.values()] == ["solve"]
    assert len(list(played.glob(f"sessions/{CASE}/units/session-*/journal.jsonl"))) == 3


def test_step_wise_asks_more_than_fixed_checkpoints_and_these_more_than_none(played: Path) -> None:
    calls = {row.policy: row.calls for row in read_record(played).rows.values()}
    assert calls["step-wise"] > calls["prog-act"] > calls["none"]
    rows = read_record(played).rows.values()
    assert all((row.plans, row.corrections, row.failed_checks) == (1, 0, 0) for row in rows)
    assert all(row.tool_calls == 15 for row in rows)


def test_what_was_played_is_not_played_again(played: Path) -> None:
    before = log_file(played).read_bytes()
    said: list[str] = []
    run_benchmark(played, tasks(), 1, said.append)
    assert said == []
    assert log_file(played).read_bytes() == before


def test_a_torn_row_is_made_again_from_the_courses_record(played: Path, tmp_path: Path) -> None:
    (tmp_path / "sessions").symlink_to(played / "sessions")
    whole = log_file(played).read_bytes()
    lines = whole.splitlines(keepends=True)
    last_row = max(number for number, line in enumerate(lines) if b'"event":"row"' in line)
    torn = b"".join([*lines[:last_row], lines[last_row][:-20]])
    log_file(tmp_path).write_bytes(torn)
    (warning,) = read_record(tmp_path).warnings
    assert warning.endswith("the last line is torn, and left out")
    said: list[str] = []
    run_benchmark(tmp_path, tasks(), 1, said.append)
    assert said[0] == warning
    assert [line[:5] for line in said[1:]] == ["[1/1]"]
    assert read_record(tmp_path).rows == read_record(played).rows
    assert read_record(tmp_path).warnings == ()


def test_a_damaged_row_is_left_out_and_named(played: Path, tmp_path: Path) -> None:
    lines = log_file(played).read_bytes().splitlines(keepends=True)
    lines[1] = lines[1].replace(b'"solved":true', b'"solved":null')
    log_file(tmp_path).write_bytes(b"".join(lines))
    record = read_record(tmp_path)
    assert record.warnings == (f"{log_file(tmp_path)}:2: damaged, and left out",)
    assert len(record.rows) == len(tasks()) - 1


def test_failed_courses_are_tried_again_and_others_are_not(tmp_path: Path) -> None:
    first, second, *_ = tasks()
    with ResultsWriter(tmp_path) as writer:
        writer.add(failed_result(first, "a fault"))
        writer.add(replace(failed_result(second), ending="unsolved"))
        writer.add(check_of(first.case))
    assert work_left([first, second], read_record(tmp_path)) == [[first]]


def test_what_a_dead_process_was_at_has_failed_and_the_rest_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = tasks()[:3]
    seen = []

    def dying_at_the_second(
        batches: list[list[BenchmarkTrial | BenchmarkCase]], *_: object
    ) -> Iterator[TrialResult | WorkerDied[BenchmarkTrial]]:
        seen.extend(batches)
        for task in played:
            row = replace(failed_result(task), ending="solved")
            yield WorkerDied(task, -9) if task is played[1] else row

    monkeypatch.setattr(runner, "map_unordered", dying_at_the_second)
    run_benchmark(tmp_path, played, 1)
    assert seen == [[*played, played[0].case]]
    endings = {key: row.ending for key, row in read_record(tmp_path).rows.items()}
    assert [endings[task.key] for task in played] == ["solved", "failed", "solved"]
    assert read_record(tmp_path).rows[played[1].key].reason == "its process ended with code -9"


def test_an_exception_in_a_course_is_a_failed_row_with_its_words(tmp_path: Path) -> None:
    task = replace(tasks()[0], statement=tasks()[0].statement.model_copy(update={"text": "Something else."}))
    run_benchmark(tmp_path, [task], 1)
    (row,) = read_record(tmp_path).rows.values()
    assert row.ending == "failed"
    assert row.reason.startswith("ModelRefused: the rule-based model understands no language")


def test_a_course_that_used_up_its_calls_is_scored_with_its_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(folder: Path, settings: AgentConfig) -> SessionResult:
        return run_session(folder, replace(settings, allowance=AgentLimits(calls=5)))

    monkeypatch.setattr(runner, "run_session", short)
    task = tasks()[0]
    row = run_trial(task, held_out_reference(task.case, tmp_path), AcceptedChain(task.case.problem), tmp_path)
    assert (row.ending, row.solved, row.calls) == ("unsolved", False, 5)
    assert row.reason == "all 5 model calls that this problem may take are used up"
    assert row.figures["node precision"] == 1
    assert 0 < row.figures["node recall"] < 1


def test_processes_share_batches_and_one_that_dies_is_replaced() -> None:
    found = list(map_unordered([[2, 3], [], [-1, 4]], square, 1))
    assert found == [4, WorkerDied(3, 7), WorkerDied(-1, -9), 16]


def test_more_processes_than_one_make_everything_of_all_batches() -> None:
    found = list(map_unordered([[1, 3, 2], [5], [-2, 6]], square, 2))
    assert sorted(one for one in found if isinstance(one, int)) == [1, 4, 25, 36]
    assert {one for one in found if isinstance(one, WorkerDied)} == {WorkerDied(3, 7), WorkerDied(-2, -9)}


def test_processes_end_with_the_one_that_started_them() -> None:
    script = "from tests.helpers.experiments.pool_work import *; "
    script += "from sharp.experiments.agent_benchmark.process_pool import map_unordered as m; "
    script += "[print(pid, flush=True) for pid in m([[0, 60]], asleep, 1)]"
    with subprocess.Popen([sys.executable, "-c", script], env=finding_helpers(), stdout=PIPE) as started:
        assert started.stdout is not None
        worker = int(started.stdout.readline())
        started.kill()
    until = time.monotonic() + 20
    while Path(f"/proc/{worker}").exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_a_process_has_one_thread() -> None:
    assert list(map_unordered([[0]], threads, 1)) == ["1"]


def test_arms_are_told_apart_by_what_differs() -> None:
    both = arms_of(["prog-act", "none"], [TEAM], [0.0, 0.2])
    assert [arm.label for arm in both] == [
        "prog-act (rule-based)",
        "none (rule-based)",
        "prog-act (rule-based, error rate 0.2)",
        "none (rule-based, error rate 0.2)",
    ]
    assert list(short_names(both).values())[2] == "prog-act, error rate 0.2"
    assert list(short_names(both[:2]).values()) == ["prog-act", "none"]
    models = arms_of(["none"], [TEAM, read_models("gpt-4o")], [0.1, 0.2])
    assert [arm.label for arm in models] == [
        "none (rule-based, error rate 0.1)",
        "none (rule-based, error rate 0.2)",
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
    assert [task.statement.style for task in list_trials([case], arms, 2)] == ["units", "units"]
    assert [task.seed for task in list_trials([case], arms, 2)] == [0, 1]
    assert [task.statement.style for task in list_trials([case], arms, 1, ["german", "plain"])] == ["german"]
    with pytest.raises(ConfigurationError, match="has a statement in style plain"):
        list_trials([case], arms, 1, ["plain"])
    with pytest.raises(ConfigurationError, match="unknown style 'dutch'"):
        list_trials([case], arms, 1, ["dutch"])


def test_cases_draw_different_mistakes_and_all_arms_the_same() -> None:
    arms = arms_of(["prog-act", "none"], [TEAM], [0.2])
    courses = list_trials(choose_cases(["burgers"]), arms, 2)
    seeds = {(task.case.id, task.seed): task.settings.seed for task in courses}
    assert len(courses) == 2 * len(seeds) == 16
    assert len(set(seeds.values())) == 8
    assert all(task.settings.seed == seeds[task.case.id, task.seed] for task in courses)


def test_a_policy_and_a_rate_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown policy 'progact'; did you mean 'prog-act'\?"):
        arms_of(["progact"], [TEAM], [0.0])
    with pytest.raises(ConfigurationError, match="no model is the rule-based model"):
        arms_of(["none"], [read_models("gpt-4o")], [0.2])


def test_a_key_follows_settings_and_the_problem_that_is_scored() -> None:
    task = tasks()[0]
    other = replace(task.case, problem=load_case("predator-prey-lake").problem)
    keys = {
        task.key,
        replace(task, seed=1).key,
        replace(task, case=other).key,
        replace(task, arm=replace(task.arm, error_rate=0.1)).key,
    }
    assert len(keys) == 4


# Four cases and two arms; errors, tokens and endings are round, so that every figure can be computed in the head.
def row(arm: str, case: str, error: float | None, tokens: int, **changes: object) -> TrialResult:
    solved = error is not None and error <= 1e-3
    base = TrialResult(f"{arm}/{case}", arm, arm, "rule-based", 0.0, case, case[0], "plain", 0, "solved", "")
    known = replace(base, solved=solved, error=error, prompt_tokens=tokens, calls=tokens // 100)
    return replace(known, **{"figures": {"node F1": 0.5}, "parameters": 1.0, **changes})  # type: ignore[arg-type]


ROWS = (
    *(row("a", case, error, 100) for case, error in (("h1", 1e-6), ("h2", 3e-6), ("w1", 5e-6))),
    row("a", "w2", 0.5, 500, parameters=0.5, figures={"node F1": 1.0}),
    row("b", "h1", 2e-6, 200),
    row("b", "h2", None, 200, ending="rejected", figures={}, parameters=None),
    row("b", "w1", None, 0, ending="failed", figures={}, parameters=None),
    row("b", "w2", 4e-6, 800),
)


FRAME = trial_frame(ROWS)


def test_outcomes_by_hand() -> None:
    a, b = plain_rows(arm_summary(FRAME))
    counts = ("cases", "solved", "false_success", "asked", "failed")
    assert [a[name] for name in counts] == [4, 3, 1, 0, 0]
    assert [b[name] for name in counts] == [4, 2, 0, 1, 1]
    errors = ("median_error", "mean_error", "common_error")
    assert [a[name] for name in errors] == pytest.approx([3e-6, 3e-6, 1e-6])
    assert [b[name] for name in errors] == pytest.approx([3e-6, 3e-6, 2e-6])
    assert solved_by_all(FRAME) == {"h1"}
    # Wilson's interval of 3 in 4, as textbooks have it.
    assert (a["low"], a["high"]) == pytest.approx((0.3006, 0.9544), abs=1e-4)


def test_pairs_and_groups_by_hand() -> None:
    assert paired_table(FRAME).rows == (("b", "4", "1", "1", "2", "0", "1"),)
    groups = solved_by_group(FRAME, "category")
    assert {key: tuple(row) for key, row in groups.iterrows()} == {
        ("h", "a"): (2, 2),
        ("h", "b"): (1, 2),
        ("w", "a"): (1, 2),
        ("w", "b"): (1, 2),
    }


def test_costs_and_chains_leave_out_faults_of_the_machinery_alone() -> None:
    a, b = plain_rows(mean_costs(FRAME))
    assert (a["runs"], a["tokens"], a["calls"]) == (4, 200, 2)
    assert (b["runs"], b["tokens"], b["calls"]) == (4, 400, 4)
    scores = chain_scores(FRAME, ["node F1"])
    assert list(scores.loc["a"]) == pytest.approx([0.875, 0.625])
    assert list(scores.loc["b"]) == pytest.approx([2 / 3, 1 / 3])
    (none,) = plain_rows(mean_costs(trial_frame([each for each in ROWS if each.ending == "failed"])))
    assert (none["runs"], none["calls"]) == (1, None)


def test_runs_with_other_seeds_give_pass_at_k_and_no_test() -> None:
    again = [replace(each, seed=1, solved=each.case != "h1") for each in ROWS if each.arm == "a"]
    trials = trial_frame([*(each for each in ROWS if each.arm == "a"), *again])
    # Of two runs each: h1 once, h2, w1 twice, w2 once.
    assert passes(trials)["a"] == pytest.approx([0.75, 1.0])
    assert set(first_runs(trials)["seed"]) == {0}
    table = passes_table(trials)
    assert table is not None
    assert table.rows == (("a", "75.0%", "100.0%"),)
    assert passes_table(FRAME) is None


def test_the_floor_stands_beside_the_figures_of_chains() -> None:
    floor = {"node F1": ConstantBaseline(0.25, 0.75, "h1")}
    parameters, nodes = chain_table(FRAME, floor, ["node F1"]).rows
    assert nodes == ("node F1 (the fixed template wins)", "0.625", "0.333", "0.250", "0.750")
    assert parameters == (PARAMETERS, "0.875", "0.667", "–", "–")
    low = {"node F1": ConstantBaseline(0.25, 0.5, "h1")}
    assert chain_table(FRAME, low, ["node F1"]).rows[1][0] == "node F1"


def test_the_published_tables_add_up_to_the_shares_that_are_printed_below_them() -> None:
    tables = published_tables()
    assert (len(tables.categories), sum(tables.cases)) == (11, 100)
    assert set(tables.categories) == {load_case(name).category for name in list_cases()}
    assert {row.policy for row in tables.rows} == set(POLICIES) - {"translation"}
    assert [sum(row.solved) for row in tables.rows] == [90, 62, 59, 56, 76, 86, 81, 85]


def test_the_page_says_who_played_what_is_missing_and_what_was_published(played: Path) -> None:
    record = read_record(played)
    rows = tuple(record.rows.values())[:-1]
    checks = (*record.checks.values(), WellPosednessCheck("x", "sound", "reject", "an alarm that is false"))
    report = build_report(BenchmarkReportData(tasks(), rows, checks, {}, ()))
    text, page = render_markdown(report), render_html(report)
    for piece in (
        "The rule-based model, a program that knows these cases, stood in for models in every arm.",
        "1 course not played yet",
        "not comparable with the figures above",
        "sound: an alarm that is false",
        "relative L2 error on a fixed held-out set is at most 0.001",
    ):
        assert piece in " ".join(text.split())
    assert page.count("<svg") == 1
    assert page.count("from 0 to 1") == 6
    assert ">mean<" in page


def test_the_files_have_every_figure_of_every_course(tmp_path: Path) -> None:
    files = publish_benchmark(tmp_path, BenchmarkReportData(tasks(), ROWS, (), {}, ()))
    table = list(csv.DictReader(files.csv.read_text().splitlines()))
    assert [line["case"] for line in table] == [each.case for each in ROWS]
    assert [line["node F1"] for line in table] == ["0.5"] * 3 + ["1.0", "0.5", "", "", "0.5"]
    assert table[5]["error"] == ""
    assert files.parquet is not None
