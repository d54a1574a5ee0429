"""Runs held against each other: what is counted, what is said beside it, and when a run pays."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import yaml

from hpc.errors import RunDirectoryError
from hpc.slurm import ClusterProfile, SubmissionLog, create_campaign
from sharp.document import CurvePoint, Panels, ScatterPanel, render_html, render_terminal
from sharp.experiments.comparison import (
    OTHER_VERSION,
    Comparison,
    Row,
    against,
    best_error_figure,
    break_evens,
    build_report,
    compare,
    comparison_overview,
    cost_figure,
    notes,
    publish_comparison,
    short_names,
)
from sharp.experiments.tables import best_error_curve
from tests.helpers.experiments.recorded_runs import PRICE, World, record

ONE_CYCLE = {"synthesis": {"max_cycles": 1, "max_rounds": 3}}
GPU = World(environment={"device": "gpu"})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    record(folder / "codepde", seed=1)
    record(folder / "pde-sharp", "pde-sharp", **ONE_CYCLE)
    record(folder / "best-of-n", "pde-sharp", synthesis={"mode": "best-of-n"})
    record(folder / "gpu", world=GPU)
    record(folder / "free", world=World(price={**PRICE, "prompt": 0.0, "completion": 0.0}))
    record(folder / "unpriced", world=World(price=None))
    record(folder / "begun", world=World(effects=9))
    return folder


def entries(folder: Path, *names: str, gpu_price: float | None = None) -> Comparison:
    return compare([folder / name for name in names], gpu_price)


def runs(folder: Path, *names: str) -> Sequence[Row]:
    return entries(folder, *names).runs


def said(group: Comparison) -> str:
    return " ".join(notes(group))


def edit(run: Path, change: dict[str, Any]) -> None:
    manifest = yaml.safe_load((run / "run.yaml").read_text())
    (run / "run.yaml").write_text(yaml.safe_dump({**manifest, **change}))


def test_a_run_is_read_with_its_method_errors_runs_tokens_and_dollars(folder: Path) -> None:
    codepde, tournament, best_of_n = runs(folder, "codepde", "pde-sharp", "best-of-n")
    assert [run["variant"] for run in (codepde, tournament, best_of_n)] == [
        *("codepde", "pde-sharp", "pde-sharp, best-of-n")
    ]
    assert (codepde["state"], codepde["nrmse"], codepde["nrmse_reference"]) == ("finished", 0.25, 0.125)
    assert (codepde["evaluations"], codepde["executions"], codepde["all_calls"]) == (4, 8, 4)
    assert (codepde["standalone_prompt_tokens"], codepde["standalone_completion_tokens"]) == (400, 40)
    assert codepde["total_dollars"] == codepde["billed_dollars"] == pytest.approx(4 * 0.001)
    assert codepde["seed"] == 1
    assert codepde["devices"] == ["cpu (A)"]
    assert (tournament["winner"], tournament["nrmse"]) == ("h1.2.1", 0.001)
    assert codepde["best_by_evaluation"] == [1.0, 0.5, pytest.approx(1 / 3), 0.25]
    assert codepde["validation_error"] == 0.25


def test_gpu_time_costs_dollars_only_at_a_price_that_was_given_and_only_where_a_gpu_ran(folder: Path) -> None:
    (without,) = runs(folder, "gpu")
    assert (without["standalone_gpu_seconds"], without["evaluation_dollars"]) == (11 * 2.0, None)
    both = entries(folder, "gpu", "codepde", gpu_price=3600.0)
    gpu, cpu = both.runs
    assert gpu["evaluation_dollars"] == pytest.approx(22.0)
    assert gpu["total_dollars"] == pytest.approx(22.0 + 0.004)
    assert cpu["evaluation_dollars"] == 0
    assert "No program ran on a GPU" in said(entries(folder, "codepde", gpu_price=3600.0))
    assert "No program ran on a GPU" not in said(both)


def test_an_unknown_price_makes_dollars_and_break_even_unknown_and_nothing_else(folder: Path) -> None:
    first, unpriced = runs(folder, "codepde", "unpriced")
    assert (unpriced["billed_dollars"], unpriced["total_dollars"], unpriced["all_calls"]) == (None, None, 4)
    assert against(unpriced, first).extra_dollars is None


def test_the_break_even_holds_dollars_against_evaluations_and_executions_saved(folder: Path) -> None:
    first, judged = runs(folder, "codepde", "pde-sharp")
    found = against(judged, first)
    assert found.baseline == "#1 codepde"
    assert found.extra_dollars == pytest.approx(judged["total_dollars"] - 0.004)
    assert (found.saved_evaluations, found.saved_executions) == (
        *(4 - judged["evaluations"], 8 - judged["executions"]),
    )
    assert found.saved_evaluations == 2
    assert found.per_evaluation == pytest.approx(found.extra_dollars / 2)
    assert found.per_execution == pytest.approx(found.extra_dollars / 4)
    assert (
        "2 evaluations saved against #1 codepde; that pays where one evaluation costs more"
        in found.sentence()
    )
    assert "4 executions saved, at break-even" in found.sentence()


def test_whoever_saves_dollars_for_more_evaluations_pays_where_evaluations_are_cheap(folder: Path) -> None:
    judged, plain = runs(folder, "pde-sharp", "codepde")
    assert "that pays where one evaluation costs less than $" in against(plain, judged).sentence()


def test_an_unfinished_run_is_flagged_and_has_no_break_even(folder: Path) -> None:
    both = entries(folder, "codepde", "begun")
    begun = both.runs[1]
    assert (begun["state"], begun["nrmse"], begun["winner"]) == ("unfinished", None, None)
    assert begun["all_calls"] == 4
    assert break_evens(both) == {}
    assert break_evens(entries(folder, "begun", "codepde")) == {}
    assert "#2 begun is not finished" in said(both)


def test_a_run_that_another_version_recorded_still_tells_its_costs_and_its_errors(tmp_path: Path) -> None:
    run = record(tmp_path / "run")
    journal = run / "journal.jsonl"
    assert b"genesis/c001/code" in journal.read_bytes()
    edit(run, {"config": {**yaml.safe_load((run / "run.yaml").read_text())["config"], "seed": 5}})
    found = compare([run])
    (known,) = found.runs
    assert (known["state"], known["note"]) == ("finished", OTHER_VERSION)
    assert (known["nrmse"], known["data_error"], known["flag"]) == (0.25, 0.01, "")
    assert (known["all_calls"], known["evaluations"], known["best_by_evaluation"]) == (4, 4, [])
    assert OTHER_VERSION in said(found)


@pytest.mark.parametrize(
    ("other", "sentence"),
    [
        (
            World(environment={"device": "cpu", "cpu": "B"}),
            "times and GPU-seconds are not comparable (cpu (A): #1; cpu (B): #2).",
        ),
        (World(data="data@2"), "errors are not comparable (data@1: #1; data@2: #2)."),
        (World(price={**PRICE, "date": "2026-09-09"}), "$5 and $50 as of 2026-09-09: #2"),
    ],
)
def test_what_differs_between_runs_is_said(tmp_path: Path, other: World, sentence: str) -> None:
    first, same = record(tmp_path / "a"), record(tmp_path / "b")
    differing = record(tmp_path / "c", world=other)
    assert sentence in said(compare([first, differing]))
    assert "#1" not in said(compare([first, same]))


def test_different_samples_software_and_prompts_are_said(tmp_path: Path) -> None:
    first = record(tmp_path / "a")
    other = record(tmp_path / "b", evaluation={"validation": 50})
    edit(other, {"software": "9.9", "prompts": {"codepde/generate": "0"}})
    words = said(compare([first, other]))
    assert "numbers of validation and test samples (100 and 100: #1; 50 and 100: #2)" in words
    assert "Versions of pde-sharp differ (0.1.0: #1; 9.9: #2)" in words
    assert "Prompts differ (" in words


def test_that_the_rule_based_model_played_is_said(folder: Path) -> None:
    assert "The rule-based model played all models of every run" in said(entries(folder, "codepde", "gpu"))


def test_answers_that_another_run_gave_are_counted_as_if_they_had_been_paid_for(tmp_path: Path) -> None:
    first = record(tmp_path / "first", "pde-sharp", **ONE_CYCLE)
    second = record(
        tmp_path / "second", "pde-sharp", genesis={"candidates": 4, "replay_from": str(first)}, **ONE_CYCLE
    )
    giver, taker = compare([first, second]).runs
    assert taker["reused_calls"] > 4
    same = ("all_calls", "standalone_prompt_tokens", "standalone_completion_tokens", "total_dollars")
    assert [taker[name] for name in same] == [giver[name] for name in same]
    assert against(taker, giver).extra_dollars == pytest.approx(0)


def test_runs_of_a_sweep_are_taken_and_each_run_once(folder: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    (sweep / "runs").mkdir(parents=True)
    (sweep / "sweep.yaml").write_text("name: s\n")
    with pytest.raises(RunDirectoryError, match="is a sweep of which no run has begun"):
        compare([sweep])
    for cell in ("b", "a"):
        record(sweep / "runs" / cell)
    found = compare([folder / "codepde", sweep, sweep / "runs" / "a"])
    assert [(run["number"], run["name"]) for run in found.runs] == [(1, "codepde"), (2, "a"), (3, "b")]


def test_what_is_no_run_is_an_error_that_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(
        RunDirectoryError, match=r"holds neither a run \(there is no .*run.yaml\) nor a sweep"
    ):
        compare([tmp_path])


def test_names_are_as_short_as_they_can_be_told_apart() -> None:
    paths = [Path("/x/one/run"), Path("/x/two/run")]
    assert short_names(paths) == ["one/run", "two/run"]
    assert short_names(paths[:1]) == ["run"]


OWN_GPUS = World(
    price=None, gpu_price={"dollars_per_gpu_hour": 3.0, "date": "2026-03-04", "source": "a list"}
)


def serve(folder: Path, gpus: int, seconds: float) -> None:
    """Let a server of the model have held GPUs for a run or a sweep."""
    roles = {name: {"time": "12h"} for name in ("controller", "server", "evaluate")}
    campaign = create_campaign(folder, ClusterProfile.model_validate({"name": "c", "roles": roles}))
    with SubmissionLog(campaign.submission_log) as submission_log:
        submission_log.log_intent("s0", "server", gpus=gpus, purpose="rule-based")
        submission_log.submitted("s0", "100")
        submission_log.ended("s0", "retired", seconds)


def test_gpu_hours_of_a_campaigns_servers_are_dollars_on_top_of_those_for_tokens(tmp_path: Path) -> None:
    run = record(tmp_path / "run", world=OWN_GPUS)
    serve(run, gpus=2, seconds=1800.0)
    (known,) = compare([run]).runs
    assert known["served_gpu_hours"] == pytest.approx(1.0)
    assert (known["billed_dollars"], known["served_dollars"], known["total_dollars"]) == (
        0,
        pytest.approx(3.0),
        pytest.approx(3.0),
    )


def test_servers_of_a_sweep_are_shared_among_its_runs_by_tokens(tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    (sweep / "runs").mkdir(parents=True)
    (sweep / "sweep.yaml").write_text("name: s\n")
    one, three = (
        record(sweep / "runs" / str(count), world=OWN_GPUS, genesis={"candidates": count}) for count in (1, 3)
    )
    serve(sweep, gpus=4, seconds=3600.0)
    assert list(compare([one, three]).rows["served_dollars"]) == [pytest.approx(3.0), pytest.approx(9.0)]


def test_the_figure_is_of_dollars_where_there_are_any_and_else_of_evaluations(folder: Path) -> None:
    def panel(*names: str, gpu_price: float | None = None) -> tuple[Panels, ScatterPanel, str]:
        figure = cost_figure(entries(folder, *names, gpu_price=gpu_price))
        assert figure is not None
        drawn = figure.chart
        assert isinstance(drawn, Panels)
        (only,) = drawn.panels
        assert isinstance(only, ScatterPanel)
        return drawn, only, figure.caption

    drawn, only, caption = panel("codepde", "free", "unpriced")
    assert drawn.across == "dollars for language models"
    assert [(spot.label, spot.x, spot.error) for spot in only.spots] == [
        ("#1", 0.004, 0.25),
        ("#2", 0.0, 0.25),
    ]
    assert [level.value for level in only.levels] == [0.01]
    assert "cost nothing stand at the left end: #2 free" in caption
    assert "Left out, for their cost is unknown: #3 unpriced" in caption
    drawn, only, caption = panel("free", "unpriced")
    assert (drawn.across, [spot.x for spot in only.spots]) == ("evaluations", [4, 4])
    assert "All costs are zero or unknown" in caption
    assert panel("gpu", gpu_price=1.0)[0].across == "dollars for language models and GPU time"
    assert cost_figure(entries(folder, "begun")) is None


def test_the_course_is_the_median_of_runs_of_one_variant_and_keeps_what_they_ended_with() -> None:
    curve = best_error_curve("three", [(None, 0.4, 0.2), (0.3,), (0.5, 0.5, 0.1)])
    assert curve.points == (CurvePoint(2, 0.4, 0.3, 0.5), CurvePoint(3, 0.2, 0.1, 0.3))
    assert best_error_curve("none", [(None, None), (0.1, 0.1)]).points == ()


def test_runs_that_were_ranked_by_something_else_have_no_course(tmp_path: Path, folder: Path) -> None:
    assert best_error_figure(entries(folder, "codepde")) is not None
    other = record(tmp_path / "run", feedback={"metrics": ["residual"]})
    assert best_error_figure(compare([other])) is None


def test_the_files_hold_every_run_and_the_page_is_well_formed(folder: Path, tmp_path: Path) -> None:
    found = entries(folder, "codepde", "pde-sharp", "begun")
    files = publish_comparison(found, tmp_path / "out")
    rows = list(csv.DictReader(files.csv.read_text().splitlines()))
    assert [(row["name"], row["state"], row["executions"]) for row in rows] == [
        *(("codepde", "finished", "8"), ("pde-sharp", "finished", rows[1]["executions"])),
        ("begun", "unfinished", rows[2]["executions"]),
    ]
    assert float(rows[0]["total_dollars"]) == pytest.approx(0.004)
    assert "#2 pde-sharp: 2 evaluations saved" in files.markdown.read_text()
    (svg,) = files.figures
    texts = [node.text for node in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert {"#1", "#2", "dollars for language models"} <= set(texts)
    assert "2026-03-04" in files.html.read_text()
    again = publish_comparison(entries(folder, "begun"), tmp_path / "out")
    assert again.figures == ()
    assert not (tmp_path / "out" / "cost.svg").exists()


def test_problems_are_compared_each_for_itself(folder: Path) -> None:
    both = entries(folder, "codepde", "pde-sharp")
    rows = both.rows.assign(problem=["advection", "burgers"])
    elsewhere = Comparison(rows, both.cards)
    groups = elsewhere.by_problem()
    assert {problem: len(group.runs) for problem, group in groups.items()} == {"advection": 1, "burgers": 1}
    assert elsewhere.to_json()["problems"]["burgers"]["break_even"] == []
    plain = both.to_json()
    assert plain["problems"]["advection"]["runs"] == [1, 2]
    assert plain["problems"]["advection"]["break_even"][0]["saved_evaluations"] == 2
    assert plain["runs"][0]["standalone_prompt_tokens"] == 400


def test_the_words_have_the_tables_the_break_even_and_what_to_beware_of(folder: Path) -> None:
    words = render_terminal(*comparison_overview(entries(folder, "codepde", "pde-sharp", "begun")))
    assert "Errors of winners on test data" in words
    assert "1.000e-03‡" in words
    assert "below the data-set error" in words
    assert "- #3 begun is not finished" in words
    assert render_html(build_report(entries(folder, "codepde", "begun"))).count("<section") == 4
