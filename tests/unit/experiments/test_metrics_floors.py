"""The floor: what a fixed chain scores for every other case."""

from __future__ import annotations

import pytest

from sharp.errors import DataError
from sharp.experiments.agent_benchmark.metrics.chains import score_chain
from sharp.experiments.agent_benchmark.metrics.constant_baseline import constant_baselines
from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, ToolUse
from tests.helpers.experiments.metrics_chains import GOLD, LINEAR, NO_INITIAL_CONDITION, NO_LBFGS


def test_the_floor_is_the_mean_over_all_pairs_of_different_cases() -> None:
    cases = {"heat": {"pinn": GOLD}, "poisson": {"pinn": NO_INITIAL_CONDITION}, "wave": {"pinn": NO_LBFGS}}
    expected = [
        score_chain(cases[template]["pinn"], cases[case]).edges.f1
        for template in cases
        for case in cases
        if case != template
    ]
    floor = constant_baselines(cases)["edge F1"]
    assert len(expected) == 6
    assert floor.mean == pytest.approx(sum(expected) / 6)
    assert floor.template == "heat"
    assert floor.best == pytest.approx((16 / 18 + 2 * 8 / 19) / 2)


def test_the_best_template_is_at_least_as_good_as_the_mean() -> None:
    cases = {"a": {"g": GOLD}, "b": {"g": LINEAR}, "c": {"g": NO_LBFGS}, "d": {"g": GOLD}}
    for floor in constant_baselines(cases).values():
        assert floor.best >= floor.mean - 1e-12


def test_a_template_is_scored_against_all_that_another_case_accepts() -> None:
    cases = {"a": {"Adam": NO_LBFGS}, "b": {"L-BFGS": GOLD, "Adam": NO_LBFGS}}
    floor = constant_baselines(cases)["completeness"]
    assert floor.template == "a"
    assert floor.best == pytest.approx(1)
    assert floor.mean < 1


def test_where_all_cases_have_one_chain_the_floor_is_the_ceiling() -> None:
    found = constant_baselines({name: {"only": GOLD} for name in "abcd"})
    assert [floor.mean for floor in found.values()] == pytest.approx([1] * len(found))
    assert [floor.best for floor in found.values()] == pytest.approx([1] * len(found))


def test_where_cases_have_nothing_in_common_a_fixed_chain_scores_nothing() -> None:
    found = constant_baselines({name: {"only": ChainGraph((ToolUse(name),))} for name in "abc"})
    assert (found["node F1"].mean, found["structure"].best) == (0, 0)


def test_a_floor_takes_two_cases() -> None:
    with pytest.raises(DataError, match="at least two cases, found 1"):
        constant_baselines({"heat": {"pinn": GOLD}})
