"""Numbers that overflow or are none, for every metric of the benchmark problems."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite

import numpy as np
import pytest

from sharp.problems import load_problem
from sharp.reference.families import family_of
from sharp.reference.feedback import all_metrics, compute, metrics_for
from sharp.reference.metrics import FeedbackMetric, MetricInput
from tests.helpers.problems.measured_cases import inputs, shipped

T = np.linspace(0, 1, 11)
PROBLEMS = ("advection", "burgers", "reaction-diffusion", "navier-stokes", "darcy")
MEASURES = [
    pytest.param(name, measure, id=measure.name)
    for name in PROBLEMS
    for measure in family_of(load_problem(name)).metrics
]
GENERAL = [
    pytest.param("advection", all_metrics()[name], id=name)
    for name in ("nrmse", "residual", "initial_condition", "periodic_wrap")
]
NOT_OF_VALUES = {"reaction_step", "diffusive_cfl"}


def broken(name: str, size: float) -> MetricInput:
    """Return a case whose prediction is of that size, from a start of ordinary size."""
    problem, rng = shipped(name), np.random.default_rng(0)
    start, frames = ((2, 33, 33), (2, 33, 33)) if name == "darcy" else ((2, 32), (2, T.size, 32))
    given = inputs(
        problem,
        {port.field: rng.uniform(1, 2, start) for port in problem.interface.inputs},
        None if name == "darcy" else T,
    )
    if name == "darcy":
        given.arrays["a"][:] = 3.0
    returned = {port.name: size * rng.uniform(1, 2, frames) for port in problem.interface.returns}
    return MetricInput(problem, given, returned, dict(returned), (given, dict(returned)), 1e-3, 1000)


@pytest.mark.parametrize(("name", "measure"), [*MEASURES, *GENERAL])
@pytest.mark.parametrize("size", [8e307, 1e160])
def test_what_overflows_is_none_with_a_note_or_finite(
    name: str, measure: FeedbackMetric, size: float
) -> None:
    found = compute([measure.name], broken(name, size))[measure.name]
    if found.value is None:
        assert found.note
    else:
        assert isfinite(found.value)
        assert found.value >= 0


@pytest.mark.parametrize(("name", "measure"), MEASURES)
def test_what_is_no_number_is_none_with_a_note(name: str, measure: FeedbackMetric) -> None:
    found = compute([measure.name], broken(name, np.nan))[measure.name]
    if measure.name not in NOT_OF_VALUES:
        assert found.value is None
        assert found.note


STEPS = [
    (name, measure.name)
    for name in PROBLEMS[:4]
    for measure in metrics_for(load_problem(name)).values()
    if measure.name == "cfl" or measure.name.endswith("_cfl") or measure.name == "reaction_step"
]


@pytest.mark.parametrize(("name", "measure"), STEPS)
@pytest.mark.parametrize(("dt", "steps"), [(None, None), (0.0, 0), (-1.0, None), (np.nan, None)])
def test_what_judges_a_step_needs_a_printed_one(
    name: str, measure: str, dt: float | None, steps: int | None
) -> None:
    case = replace(broken(name, 1.0), internal_dt=dt, internal_steps=steps)
    found = compute([measure], case)[measure]
    assert found.value is None
    assert "printed neither `dt=...`" in found.note
