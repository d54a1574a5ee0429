"""Judges see the permitted kinds of feedback and nothing else."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest

from sharp.evaluation.feedback import (
    failure_text,
    feedback_described,
    feedback_text,
    measures_of,
    metric,
    ranking,
)
from sharp.evaluation.protocol import CandidateFailure, Evaluation, Scores
from sharp.reference.feedback import all_metrics

SCORES = Scores(
    nrmse=1.2345e-3,
    nrmse_per_sample=(1.1e-3, 1.369e-3),
    max_error=7.77e-2,
    nrmse_reference=4.4e-4,
    nrmse_reference_per_sample=(4.3e-4, 4.5e-4),
    residual=5.555e-2,
    residual_note="fourth order, smooth regions only",
    measures={"initial_condition": 2.5e-3, "two_grid": 0.0625, "cfl": None},
    measure_notes={"initial_condition": "largest for Vx", "cfl": "the program printed no time step"},
)
PASSED = Evaluation(
    failure=None,
    scores=SCORES,
    run_time_s=1.234,
    total_s=2.5,
    peak_memory_mb=123.4,
    internal_dt=2.5e-4,
    internal_steps=8000,
    dtype="float32",
    stdout="secret 42",
    stderr="warning 43",
    environment={"sandbox": "rlimits"},
)
FAILURE = CandidateFailure(
    "exception", "ValueError: bad", 'File "solver.py", line 3, in step\n    raise ValueError("bad")\n'
)
FAILED = replace(PASSED, failure=FAILURE, scores=None, internal_dt=None, internal_steps=None, dtype=None)


def test_nrmse_report():
    assert feedback_text(PASSED, ("nrmse",)) == (
        "Status: passed\n"
        "nRMSE: 1.234e-03 (mean of 2 samples, worst 1.369e-03 at index 1)\n"
        "Maximum error: 7.770e-02\n"
        "Internal time step: 0.00025\n"
        "Internal steps: 8000\n"
        "Run time: 1.23 s\n"
        "Peak memory: 123 MB\n"
        "Returned precision: float32"
    )


def test_residual_report_holds_nothing_derived_from_a_reference():
    text = feedback_text(PASSED, ("residual",), reveal_data_error=0.5)
    assert "PDE residual, normalised: 5.555e-02 (fourth order, smooth regions only)" in text
    numbers = {float(number) for number in re.findall(r"\d+\.?\d*(?:e[-+]\d+)?", text)}
    assert numbers == {5.555e-2, 2.5e-4, 8000, 1.23, 123, 32}


def test_both_kinds_may_be_shown():
    text = feedback_text(PASSED, ("nrmse", "residual"))
    assert "nRMSE" in text
    assert "residual" in text


def test_no_feedback_says_only_whether_it_passed():
    assert feedback_text(PASSED, ("none",)) == "Status: passed"
    assert feedback_text(FAILED, ("none",)) == "Status: failed"


@pytest.mark.parametrize("kinds", [("nrmse",), ("residual",), ("nrmse", "residual"), ("none",)])
def test_truth_and_output_are_never_shown(kinds):
    text = feedback_text(PASSED, kinds)
    assert not re.search(r"4\.4|4\.3|4\.5|secret|warning", text)


def test_floor_is_shown_on_request_only():
    assert "Distance of the data set" not in feedback_text(PASSED, ("nrmse",))
    assert "Distance of the data set from the reference solution: 9.7e-04" in feedback_text(
        PASSED, ("nrmse",), reveal_data_error=9.7e-4
    ).replace("9.700e-04", "9.7e-04")


def test_what_is_told_by_classes_does_not_depend_on_how_busy_a_machine_is():
    idle = replace(PASSED, run_time_s=0.4, repeat_times_s=(), load_s=0.5, peak_memory_mb=190.0)
    busy = replace(idle, run_time_s=7.3, load_s=6.0, peak_memory_mb=201.0)
    slow = replace(idle, run_time_s=70.0)
    told = [feedback_text(each, ("nrmse",), measured=False) for each in (idle, busy, slow)]
    assert told[0] == told[1] != told[2]
    assert "Run time: less than 10 s\nPeak memory: less than 256 MB" in told[0]
    assert "Run time: less than 100 s\n" in told[2]


@pytest.mark.parametrize(("load_s", "told"), [(None, False), (0.5, False), (3.21, True)])
def test_long_work_before_the_call_is_told(load_s, told):
    text = feedback_text(replace(PASSED, load_s=load_s), ("residual",))
    line = "\nLoad time: 3.21 s before the call, on imports and work at module level; not in the run time\n"
    assert (line in text) == told == ("Load time" in text)


def test_failure_report():
    assert feedback_text(FAILED, ("nrmse",)) == (
        "Status: failed (exception)\n"
        "ValueError: bad\n"
        'File "solver.py", line 3, in step\n'
        '    raise ValueError("bad")\n'
        "Run time: 1.23 s\n"
        "Peak memory: 123 MB"
    )
    assert failure_text(CandidateFailure("timeout", "Too slow.")) == "Status: failed (timeout)\nToo slow."


def test_residual_that_is_not_available_is_said_to_be_so():
    evaluation = replace(
        PASSED, scores=replace(SCORES, residual=None, residual_note="the residual overflows")
    )
    assert "PDE residual: not available (the residual overflows)" in feedback_text(evaluation, ("residual",))
    assert metric(evaluation, ("residual",)) == math.inf


@pytest.mark.parametrize(
    ("kinds", "value"),
    [
        (("nrmse",), 1.2345e-3),
        (("residual", "nrmse"), 1.2345e-3),
        (("residual",), 5.555e-2),
        (("none",), 0.0),
    ],
)
def test_metric(kinds, value):
    assert metric(PASSED, kinds) == value
    assert metric(FAILED, kinds) == math.inf


FREE = ("initial_condition", "residual", "two_grid", "cfl")


def test_measures_report():
    assert feedback_text(PASSED, ("initial_condition", "cfl", "residual")).splitlines()[:4] == [
        "Status: passed",
        "Initial condition mismatch: 2.500e-03 (largest for Vx)",
        "Explicit stability limit exceeded: not available (the program printed no time step)",
        "PDE residual, normalised: 5.555e-02 (fourth order, smooth regions only)",
    ]


def test_the_number_that_ranks_comes_first():
    assert feedback_text(PASSED, ("two_grid", "nrmse")).splitlines()[1].startswith("nRMSE: 1.234e-03")
    weighted = feedback_text(PASSED, ("nrmse", "two_grid", "cfl"), weights={"nrmse": 2, "two_grid": 0.5})
    assert weighted.splitlines()[1] == "Combined score: 3.372e-02 (2 x nRMSE + 0.5 x Two-grid difference)"
    lacking = feedback_text(PASSED, ("cfl",), weights={"cfl": 1})
    assert "Combined score: not available (1 x Explicit stability limit exceeded)" in lacking


@pytest.mark.parametrize("weights", [{}, {"residual": 1.0, "two_grid": 2.0}])
def test_measures_without_a_reference_bring_nothing_derived_from_one(weights):
    reference_free = replace(SCORES, nrmse=9.1, nrmse_per_sample=(9.2, 9.3), max_error=9.4, data_error=9.5)
    text = feedback_text(replace(PASSED, scores=reference_free), FREE, reveal_data_error=9.5, weights=weights)
    assert not re.search(r"\b9\.|nRMSE|reference|error", text, re.IGNORECASE)
    changed = replace(SCORES, nrmse=1.0, nrmse_per_sample=(1.0, 1.0), max_error=1.0, data_error=0.5)
    assert text == feedback_text(
        replace(PASSED, scores=changed), FREE, reveal_data_error=0.5, weights=weights
    )


def test_why_a_run_was_abandoned_is_told_only_where_errors_are():
    abandoned = replace(
        FAILED, failure=CandidateFailure("early_stopped", "After 3 of 8 samples its nRMSE exceeds 9.1.")
    )
    assert "exceeds 9.1" in feedback_text(abandoned, ("residual", "nrmse"))
    assert "9.1" not in feedback_text(abandoned, FREE)
    assert feedback_text(abandoned, FREE).startswith(
        "Status: failed (early_stopped)\nThe run was stopped early"
    )


@pytest.mark.parametrize(
    ("kinds", "weights", "value"),
    [
        (("two_grid", "residual"), {}, 0.0625),
        (("two_grid", "nrmse"), {}, 1.2345e-3),
        (("two_grid", "nrmse"), {"two_grid": 1.0}, 0.0625),
        (("two_grid", "nrmse"), {"two_grid": 1.0, "nrmse": 10.0}, 0.0625 + 10 * 1.2345e-3),
        (("cfl", "residual"), {}, math.inf),
        (("residual", "cfl"), {}, 5.555e-2),
        (("residual", "cfl"), {"residual": 1.0, "cfl": 1e-9}, math.inf),
        (("mass_drift",), {}, math.inf),
    ],
)
def test_metric_of_measures_and_weights(kinds, weights, value):
    assert metric(PASSED, kinds, weights) == pytest.approx(value)
    assert metric(FAILED, kinds, weights) == math.inf


def test_what_ranks():
    assert ranking(("residual", "nrmse")) == {"nrmse": 1.0}
    assert ranking(("cfl", "residual")) == {"cfl": 1.0}
    assert ranking(("cfl", "residual"), {"residual": 2.0}) == {"residual": 2.0}
    assert ranking(("none",)) == {}


def test_what_an_evaluation_is_asked_for():
    assert measures_of(("nrmse", "two_grid", "residual", "cfl")) == ("two_grid", "cfl")
    assert measures_of(("nrmse", "residual")) == measures_of(("none",)) == ()


def test_kinds_are_described_as_they_are_registered():
    lines = feedback_described(("two_grid", "nrmse"))
    assert [line.partition(":")[0] for line in lines[:2]] == ["nRMSE", "Two-grid difference"]
    for line, name in zip(lines, ("nrmse", "two_grid"), strict=False):
        assert all_metrics()[name].description in line
        assert all_metrics()[name].normalisation in line
    assert lines[-1] == "Programs are ranked by nRMSE; smaller is better, 0 is perfect."
    weighted = feedback_described(("two_grid", "cfl"), {"two_grid": 0.5})
    assert (
        weighted[-1] == "Programs are ranked by 0.5 x Two-grid difference; smaller is better, 0 is perfect."
    )
    assert feedback_described(("none",)) == ["Nothing but whether the program runs."]
