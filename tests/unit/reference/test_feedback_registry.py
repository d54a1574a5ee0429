"""What is registered, for whom, and that a measure sees no more than it needs."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from sharp.errors import ConfigurationError
from sharp.problems import list_problems, load_problem, parse_problem
from sharp.reference.datasets import Inputs
from sharp.reference.feedback import all_metrics, compute, metrics_for
from sharp.reference.metrics import FeedbackMetric, MetricInput, MetricValue

FAMILIES = {load_problem(name).family for name in list_problems()}
GENERAL = {"nrmse", "residual", "agreement", "two_grid"}
EVOLVING = {"initial_condition", "periodic_wrap", "cfl"}


def constant(name: str = "advection") -> MetricInput:
    problem = load_problem(name)
    u = np.ones((2, 6, 16))
    inputs = Inputs({"u0_batch": u[:, 0]}, np.linspace(0, 1, 6), (np.arange(16) + 0.5) / 16)
    return MetricInput(problem, inputs, {"u": u}, {"u": 2 * u}, (inputs, {"u": u}))


@pytest.mark.parametrize("measure", all_metrics().values(), ids=list(all_metrics()))
def test_every_measure_is_described(measure: FeedbackMetric) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_]*", measure.name)
    assert set(measure.families) <= FAMILIES
    assert measure.description.endswith(".")
    for text in (measure.title, measure.source, measure.shape, measure.normalisation):
        assert text
        assert not text.endswith(".")
    assert ":" not in measure.title


def test_names_and_titles_are_unique() -> None:
    assert all(name == measure.name for name, measure in all_metrics().items())
    assert len({measure.title for measure in all_metrics().values()}) == len(all_metrics())


@pytest.mark.parametrize("name", list_problems())
def test_every_problem_has_the_general_measures_and_its_own(name: str) -> None:
    problem = load_problem(name)
    known = metrics_for(problem)
    assert known.keys() >= (GENERAL if problem.time is None else GENERAL | EVOLVING)
    assert ("boundary_condition" in known) == (problem.family == "darcy-2d")
    assert any(measure.families == (problem.family,) for measure in known.values())
    others = {
        other.name
        for other in all_metrics().values()
        if other.families and problem.family not in other.families
    }
    assert not known.keys() & others


def test_a_problem_of_no_family_has_what_needs_none() -> None:
    text = list_problems()["advection"].read_text().replace("family: advection", "family: other")
    assert set(metrics_for(parse_problem(text, "other"))) == GENERAL


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(
        ConfigurationError, match="advection: there is no feedback measure 'two-grid'; did you mean"
    ):
        compute(["cfl", "two-grid"], constant())
    with pytest.raises(ConfigurationError, match="boundary_condition"):
        compute(["boundary_condition"], constant())


def spying(seen: list[MetricInput], result: float = 0.5, **needs: bool) -> FeedbackMetric:
    def function(case: MetricInput) -> MetricValue:
        seen.append(case)
        return MetricValue(result)

    return replace(
        all_metrics()["cfl"], **{"needs_data": False, "needs_coarse_run": False, **needs}, function=function
    )


@pytest.mark.parametrize("needs", [{}, {"needs_data": True}, {"needs_coarse_run": True}])
def test_a_measure_sees_the_reference_and_the_coarse_run_only_if_it_needs_them(
    monkeypatch: pytest.MonkeyPatch, needs: dict[str, bool]
) -> None:
    seen: list[MetricInput] = []
    monkeypatch.setitem(all_metrics(), "cfl", spying(seen, **needs))
    compute(["cfl"], constant())
    assert (seen[0].reference is not None) == needs.get("needs_data", False)
    assert (seen[0].coarse is not None) == needs.get("needs_coarse_run", False)


def test_what_is_missing_is_told() -> None:
    bare = replace(constant(), reference=None, coarse=None)
    found = compute(["nrmse", "two_grid", "initial_condition"], bare)
    assert found["nrmse"] == MetricValue(None, "there is no reference solution")
    assert found["two_grid"] == MetricValue(None, "there is no solution on the coarser grid")
    assert found["initial_condition"] == MetricValue(0.0)


@pytest.mark.parametrize("result", [np.nan, np.inf])
def test_a_number_that_is_none_is_no_value(monkeypatch: pytest.MonkeyPatch, result: float) -> None:
    monkeypatch.setitem(all_metrics(), "cfl", spying([], result))
    assert compute(["cfl"], constant())["cfl"] == MetricValue(None, "the numbers overflow")
