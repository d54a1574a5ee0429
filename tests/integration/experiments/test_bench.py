"""The benchmark carried out: rows that outlive everything, processes that may die, figures recomputed by hand."""

from __future__ import annotations

import csv
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from sharp.agent.policies import POLICIES
from sharp.agent.sessions import SessionResult, run_session
from sharp.agent.settings import ROLES, AgentConfig, models_of_team
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
from sharp.experiments.agent_benchmark.metrics.structure import ConstantBaseline
from sharp.experiments.agent_benchmark.process_pool import WorkerDied, map_unordered
from sharp.experiments.agent_benchmark.published import published_tables
from sharp.experiments.agent_benchmark.runner import perform_trial
from sharp.experiments.agent_benchmark.trial_folder import read_result, write_trial
from sharp.experiments.agent_benchmark.trials import (
    Arm,
    TrialResult,
    choose_cases,
    result_of,
    short_names,
    trial_matrix,
    trial_of,
)
from sharp.experiments.frame import plain_rows
from sharp.experiments.load import load_rows
from sharp.experiments.sweeps.folder import run_path
from sharp.experiments.sweeps.plan import SweepPlan
from sharp.experiments.sweeps.runner import keep_file
from sharp.experiments.sweeps.status import view_sweep
from sharp.experiments.sweeps.sweep_log import log_file, read_record
from sharp.problems.cases import BenchmarkCase, list_cases, load_case
from sharp.runs import create_run
from tests.helpers import finding_helpers
from tests.helpers.experiments.benchmarks import carried_out, planned, trials_of
from tests.helpers.experiments.pool_work import square, threads
from tests.helpers.experiments.small_sweeps import Watch

CASE = "heat-rod-two-ends"
THREE = ("prog-act", "step-wise", "none")


def sweep(folder: Path, *cases: str, policies: Sequence[str] = THREE, **more: Any) -> SweepPlan:
    return planned(folder, cases or (CASE,), policies, **more)


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One case and three policies, run to the end; not to be changed."""
    folder = tmp_path_factory.mktemp("benchmarks") / "played"
    carried_out(sweep(folder))
    return folder


def results(folder: Path) -> dict[str, TrialResult]:
    """The results in the log of a benchmark, by cell."""
    found = {cell: result_of(row.trial) for cell, row in read_record(folder).rows.items()}
    return {cell: row for cell, row in found.items() if isinstance(row, TrialResult)}


def test_every_trial_is_run_once_and_solved(played: Path) -> None:
    plan, rows = sweep(played), results(played)
    assert rows.keys() == plan.by_id.keys()
    assert {row.key for row in rows.values()} == {trial.key for trial in trials_of(plan)}
    assert all(row.solved and row.ending == "solved" and not row.alarm for row in rows.values())
    assert all(row.figures["completeness"] == row.parameters == 1 for row in rows.values())
    assert len(list(played.glob("runs/*/session-*/journal.jsonl"))) == 3
    assert load_rows(played)["solved"].tolist() == [True] * 3
    assert view_sweep(played).finished
    assert view_sweep(played).used["calls"] == sum(row.calls for row in rows.values())


def test_step_wise_asks_more_than_fixed_checkpoints_and_these_more_than_none(played: Path) -> None:
    rows = results(played).values()
    calls = {row.policy: row.calls for row in rows}
    assert calls["step-wise"] > calls["prog-act"] > calls["none"]
    assert all((row.plans, row.corrections, row.failed_checks) == (1, 0, 0) for row in rows)
    assert all(row.tool_calls == 15 for row in rows)


def test_what_was_run_is_not_run_again(played: Path) -> None:
    before, watch = log_file(played).read_bytes(), Watch()
    carried_out(sweep(played), watch)
    assert watch.begun_cells == []
    assert log_file(played).read_bytes() == before


def test_a_torn_row_is_made_again_from_the_results_of_trials(played: Path, tmp_path: Path) -> None:
    folder, watch = tmp_path / "copy", Watch()
    shutil.copytree(played, folder)
    whole = log_file(folder).read_bytes()
    lines = whole.splitlines(keepends=True)
    last_row = max(number for number, line in enumerate(lines) if b'"event":"row"' in line)
    log_file(folder).write_bytes(b"".join([*lines[:last_row], lines[last_row][:-20]]))
    carried_out(sweep(folder), watch)
    assert len(watch.begun_cells) == 1
    assert results(folder) == results(played)


def test_a_trial_that_failed_is_tried_again_and_others_are_not(tmp_path: Path) -> None:
    plan = sweep(tmp_path / "bench", policies=THREE[:2])
    keep_file(plan)
    first, second = plan.cells
    blocked = run_path(plan.folder, first.id) / f"session-{trial_of(first.config).settings.hash[:12]}"
    blocked.parent.mkdir(parents=True)
    blocked.write_text("in the way of the session's folder")
    carried_out(plan)
    rows = read_record(plan.folder).rows
    assert (rows[first.id].state, rows[second.id].state) == ("failed", "finished")
    assert "session-" in rows[first.id].note
    blocked.unlink()
    again, watch = sweep(plan.folder, policies=THREE[:2]), Watch()
    carried_out(again, watch)
    assert watch.begun_cells == [first.id]
    assert read_record(plan.folder).rows[first.id].state == "finished"


def test_a_result_counts_for_its_trial_alone(tmp_path: Path) -> None:
    (cell,) = sweep(tmp_path / "bench", policies=["none"]).cells
    folder, trial = tmp_path / "trial", trial_of(cell.config)
    write_trial(folder, cell.config, trial.key, {})
    perform_trial(str(folder), str(tmp_path))
    found = read_result(folder, trial.key)
    assert found is not None
    assert result_of(found["result"]).key == trial.key
    assert read_result(folder, replace(trial, seed=1).key) is None
    (folder / "result.json").write_text("{")
    assert read_result(folder, trial.key) is None


def test_a_trial_that_used_up_its_calls_is_scored_with_its_chain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def short(folder: Path, settings: AgentConfig, **_: Any) -> SessionResult:
        return run_session(folder, replace(settings, allowance=AgentLimits(calls=5)))

    monkeypatch.setattr(runner, "run_session", short)
    cell = sweep(tmp_path / "bench").cells[0]
    row = runner.run_trial(trial_of(cell.config), tmp_path, tmp_path, cell.config)
    assert isinstance(row, TrialResult)
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


def arms(folder: Path, policies: Sequence[str], teams: Sequence[str], *rates: float) -> list[Arm]:
    plan = planned(folder, [CASE], policies, rates, teams=teams)
    return list(dict.fromkeys(trial.arm for trial in trials_of(plan)))


def test_arms_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    both = arms(tmp_path, ["prog-act", "none"], ["rule-based"], 0.0, 0.2)
    assert [arm.label for arm in both] == [
        "prog-act (rule-based)",
        "prog-act (rule-based, error rate 0.2)",
        "none (rule-based)",
        "none (rule-based, error rate 0.2)",
    ]
    assert list(short_names(both).values())[1] == "prog-act, error rate 0.2"
    assert list(short_names(both[::2]).values()) == ["prog-act", "none"]
    models = arms(tmp_path, ["none"], ["rule-based", "gpt-4o"], 0.1, 0.2)
    assert [arm.label for arm in models] == [
        "none (rule-based, error rate 0.1)",
        "none (rule-based, error rate 0.2)",
        "none (gpt-4o)",
    ]


def test_roles_may_have_models_of_their_own() -> None:
    names = {role: "b" if role in ("parser", "solver") else "a" for role in ROLES}
    text = ",".join(f"{role}={name}" for role, name in names.items())
    assert models_of_team(text) == tuple(names.values())
    assert Arm("none", models_of_team(text)).team == text.replace(",", ", ")
    with pytest.raises(ConfigurationError, match="unknown role 'judge'; valid roles: orchestrator"):
        models_of_team("judge=a")
    with pytest.raises(ConfigurationError, match="found none for solver"):
        models_of_team(text.replace("solver=b", "solver="))


def test_cases_are_chosen_by_name_and_category_once() -> None:
    chosen = choose_cases(["burgers", "burgers-plane", "heat-rod-two-ends"])
    assert [case.id for case in chosen[-1:]] == ["heat-rod-two-ends"]
    assert len(chosen) == 5
    with pytest.raises(SpecificationError, match=r"did you mean 'burgers'\?"):
        choose_cases(["burger"])


def test_trials_are_of_the_first_statement_or_of_the_styles_that_are_named(tmp_path: Path) -> None:
    def said(seeds: int, *styles: str) -> list[tuple[str, int]]:
        plan = planned(tmp_path, [CASE], ["none"], seeds=seeds, styles=styles)
        return [(trial.statement.style, trial.seed) for trial in trials_of(plan)]

    assert said(2) == [("units", 0), ("units", 1)]
    assert said(1, "german", "plain") == [("german", 0)]
    with pytest.raises(ConfigurationError, match="has a statement in style plain"):
        said(1, "plain")
    with pytest.raises(ConfigurationError, match="unknown style 'dutch'"):
        said(1, "dutch")


def test_cases_draw_different_mistakes_and_all_arms_the_same(tmp_path: Path) -> None:
    trials = trials_of(planned(tmp_path, ["burgers"], ["prog-act", "none"], [0.2], seeds=2))
    seeds = {(trial.case.id, trial.seed): trial.settings.seed for trial in trials}
    assert len(trials) == 2 * len(seeds) == 16
    assert len(set(seeds.values())) == 8
    assert all(trial.settings.seed == seeds[trial.case.id, trial.seed] for trial in trials)


def test_a_policy_and_a_rate_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"unknown policy 'progact'; did you mean 'prog-act'\?"):
        trial_matrix([CASE], ["progact"], ["rule-based"], [0.0], 1)
    with pytest.raises(ConfigurationError, match="no model is the rule-based model"):
        trial_matrix([CASE], ["none"], ["gpt-4o"], [0.2], 1)


def test_a_run_is_no_trial(tmp_path: Path) -> None:
    (cell,) = planned(tmp_path, [CASE], ["none"]).cells
    with pytest.raises(ConfigurationError, match="trial: goes with a sweep, not with a run"):
        create_run(cell.config, tmp_path / "run")


def test_a_key_follows_settings_and_the_problem_that_is_scored(tmp_path: Path) -> None:
    trial = trials_of(sweep(tmp_path))[0]
    assert isinstance(trial.case, BenchmarkCase)
    other = replace(trial.case, problem=load_case("predator-prey-lake").problem)
    keys = {
        trial.key,
        replace(trial, seed=1).key,
        replace(trial, case=other).key,
        replace(trial, arm=replace(trial.arm, error_rate=0.1)).key,
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
    rows = list(results(played).values())[:-1]
    rows[0] = replace(rows[0], case="sound", alarm="an alarm that is false")
    report = build_report(BenchmarkReportData(tuple(trials_of(sweep(played))), tuple(rows), {}, ()))
    text, page = render_markdown(report), render_html(report)
    for piece in (
        "The rule-based model, a program that knows these cases, stood in for models in every arm.",
        "1 trial not run yet",
        "not comparable with the figures above",
        "| category | prog-act | PDE-Agent, published | o4-mini, published | Gemini, published | step-wise |",
        "| heat | 1 of 1 | 17 of 18 | 14 of 18 | 15 of 18 |",
        "sound: an alarm that is false",
        "relative L2 error on a fixed held-out set is at most 0.001",
    ):
        assert piece in " ".join(text.split())
    assert page.count("<svg") == 1
    assert page.count("from 0 to 1") == 6
    assert ">mean<" in page


def test_the_files_have_every_figure_of_every_trial(tmp_path: Path) -> None:
    data = BenchmarkReportData(tuple(trials_of(sweep(tmp_path))), ROWS, {}, ())
    files = publish_benchmark(tmp_path, data, "report", "table")
    table = list(csv.DictReader(files.csv.read_text().splitlines()))
    assert [line["case"] for line in table] == [each.case for each in ROWS]
    assert [line["node F1"] for line in table] == ["0.5"] * 3 + ["1.0", "0.5", "", "", "0.5"]
    assert table[5]["error"] == ""
    assert files.parquet is not None
