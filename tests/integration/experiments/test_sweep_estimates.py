"""What a sweep over methods is estimated to need."""

from __future__ import annotations

from pathlib import Path

import pytest

from sharp.experiments.agent_benchmark.trials import trial_matrix
from sharp.experiments.studies.model_assignment import paper_models, rule_based_models
from sharp.experiments.studies.study_file import read_study
from sharp.experiments.sweeps.estimate import SweepEstimate, estimate_sweep, format_sweep_plan
from sharp.experiments.sweeps.file import sweep_of
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.plan import make_plan
from sharp.experiments.sweeps.sweep_log import read_record
from sharp.llm import EstimateRange, load_card
from sharp.llm.estimate import BASELINE_REPAIRS_PER_PROGRAM as REPAIRS
from tests.helpers.experiments.benchmarks import carried_out
from tests.helpers.experiments.benchmarks import planned as planned_trials
from tests.helpers.experiments.made import planned
from tests.helpers.experiments.small_sweeps import plan_of

METHODS = "[codepde, codepde-refine, cot-reflection, moa, cepo, funsearch, aide, pde-sharp]"


def estimated(folder: Path, methods: str, more: str = "") -> SweepEstimate:
    return estimate_sweep(plan_of(folder, f"{more}matrix:\n  method: {methods}\n"), ResourceCache(), None)


def test_every_method_is_counted_by_its_own_rules(tmp_path: Path) -> None:
    alone = {
        method: estimated(tmp_path / method, f"[{method}]")
        for method in METHODS.strip("[]").split(", ")
        if (tmp_path / method).mkdir() is None
    }
    assert alone["cepo"].calls.expected > alone["moa"].calls.expected > alone["codepde"].calls.expected
    assert alone["codepde"].evaluations.expected == 3
    assert alone["codepde-refine"].evaluations.expected == 3 + 12
    assert alone["funsearch"].evaluations.expected == 12 + 32
    assert alone["aide"].evaluations.most == 96
    (tmp_path / "all").mkdir()
    together = estimated(tmp_path / "all", METHODS)
    assert together.evaluations.expected == sum(one.evaluations.expected for one in alone.values())


def test_programs_that_another_method_has_written_and_debugged_are_not_paid_for_again(tmp_path: Path) -> None:
    guess = estimated(tmp_path, "[codepde, codepde-refine, aide]")
    assert guess.reused_calls.expected == pytest.approx(3 + 3 * REPAIRS)
    assert guess.reused_calls.most == 2 * (3 + 3 * 4)


def test_funsearch_takes_as_many_programs_as_it_begins_with(tmp_path: Path) -> None:
    guess = estimated(tmp_path, "[codepde, funsearch]")
    # FunSearch begins with twelve programs, which are more than the three of CodePDE, and gives it all.
    assert guess.reused_calls.expected == pytest.approx(3 + 3 * REPAIRS)


def test_where_debugging_differs_only_the_programs_are_counted_as_given(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "matrix: {method: [codepde, codepde-refine], synthesis.repairs: [1, 2]}\n")
    shared = estimate_sweep(plan, ResourceCache(), None).reused_calls
    # Of four cells three take the programs; the two of CodePDE-R take the debugging of those of CodePDE as well.
    assert shared.expected == pytest.approx(3 * 3 + 3 * 1 + 3 * REPAIRS)


def test_the_plan_says_who_gives_what_to_whom(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "matrix: {method: [codepde, codepde-refine]}\n")
    words = format_sweep_plan(plan, estimate_sweep(plan, ResourceCache(), None))
    assert (
        "  codepde: pays for all of its own\n    gives its candidates and their debugging to codepde-refine\n"
        in words
    )


def test_authors_whose_contexts_are_too_small_are_named_before_a_study_begins(tmp_path: Path) -> None:
    file = read_study("more-models")
    plan = planned(file, tmp_path / "sweep", paper_models(file.models))
    guess = estimate_sweep(plan, ResourceCache(), None)
    named = [line.split(",")[0] for line in guess.contexts]
    assert named == ["deepseekmath-7b", "mathcoder2-deepseekmath-7b"]
    assert "author in 90 cells: 2,560 of 4,096 tokens are left beside the answer" in guess.contexts[0]
    assert guess.contexts[0] in " ".join(format_sweep_plan(plan, guess).split())
    usual = planned(file, tmp_path / "other", rule_based_models(file.models))
    assert estimate_sweep(usual, ResourceCache(), None).contexts == ()


def test_trials_are_estimated_by_those_of_their_policy_and_bounded(tmp_path: Path) -> None:
    def guess(team: str, policies: list[str]) -> SweepEstimate:
        matrix = trial_matrix(["heat-rod-two-ends"], policies, [team], [0.0], 2)
        file = sweep_of({"name": "b", "base": {"problem": "", "trial": {}}, "matrix": matrix})
        return estimate_sweep(make_plan(file, tmp_path / "bench", ResourceCache()), ResourceCache(), None)

    program, team = (guess("gpt-4o", [policy]) for policy in ("tool-generation", "prog-act"))
    assert (program.calls.most, team.calls.most) == (2 * 12, 2 * 120)
    assert 0 < program.prompt_tokens.expected < team.prompt_tokens.expected < team.prompt_tokens.most
    assert team.dollars is not None
    assert team.dollars.expected == pytest.approx(2 * (24_000 * 2.5 + 1_300 * 10) / 1e6)
    assert team.dollars.most == pytest.approx(
        240 * (128_000 * 2.5 + load_card("gpt-4o").sampling.max_tokens * 10) / 1e6
    )
    assert guess("llama-3.3-70b", ["none"]).dollars is None
    assert guess("rule-based", ["none"]).dollars == EstimateRange(0, 0)
    carried_out(planned_trials(tmp_path / "bench", ["heat-rod-two-ends"], ["single-model"]))
    measured = guess("rule-based", ["single-model"])
    (row,) = read_record(tmp_path / "bench").rows.values()
    assert measured.prompt_tokens.expected == row.prompt_tokens > 0
