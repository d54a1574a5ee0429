"""Times of calls are our own, and believed only where no words are on the private pipe but the harness's."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.evaluation.calls import CallPlan, SolverCall, call_times, load_time

FIRST = SolverCall("scored", {"a": np.arange(1.0, 3), "t": np.ones(2)}, {"beta": 1.0}, {"u": (2,)}, ("a",))
OTHER = SolverCall("other", {"a": np.ones(3)}, {}, {"u": (3,)})
WORK = CallPlan("solver", (FIRST, OTHER), repeats=2)
NAMES = ("scored", "repeat-1", "other")
WORDS = ["load", *(f"{word} {name}" for name in NAMES for word in ("ready", "call", "done", "kept"))]


def events(*words):
    return [(float(moment), word) for moment, word in enumerate(words)]


def test_the_first_call_is_repeated_before_the_others():
    assert [call.name for call in WORK.sequence()] == ["scored", "repeat-1", "other"]
    assert [call.name for call in WORK.repetitions] == ["repeat-1"]


def test_repetitions_have_inputs_near_those_of_the_first_call_and_their_own_in_every_plan():
    again, other = (CallPlan("solver", (FIRST,), repeats=2).repetitions[0] for _ in range(2))
    for call in (again, other):
        assert call.change_from(FIRST) > 0
        assert call.parameters == FIRST.parameters
        np.testing.assert_array_equal(call.arrays["t"], FIRST.arrays["t"])
        np.testing.assert_allclose(call.arrays["a"], FIRST.arrays["a"], rtol=2e-4)
        assert FIRST.arrays["a"].min() <= call.arrays["a"].min() <= call.arrays["a"].max() <= 2
    assert again.change_from(other) > 0
    assert FIRST.change_from(FIRST) == 0


def test_repetitions_of_a_call_without_arrays_have_other_parameters():
    (again,) = CallPlan(
        "solver", (SolverCall("scored", {}, {"nu": 2.0}, {"u": (2,)}),), repeats=2
    ).repetitions
    assert again.parameters["nu"] == pytest.approx(2.0, rel=1e-4)
    assert again.parameters["nu"] != 2.0


def test_a_lone_sample_is_changed_too():
    lone = SolverCall("scored", {"a": np.ones((1, 4), np.float32)}, {}, {"u": (1, 4)}, ("a",))
    (again,) = CallPlan("solver", (lone,), repeats=2).repetitions
    assert again.change_from(lone) > 0
    assert again.arrays["a"].dtype == np.float32


def test_times_last_until_the_result_was_taken_away():
    assert call_times(events(*WORDS), WORK) == {"scored": 2.0, "repeat-1": 2.0, "other": 2.0}


@pytest.mark.parametrize("length", range(len(WORDS)))
def test_a_run_that_was_cut_off_keeps_the_times_that_it_has(length):
    times = call_times(events(*WORDS[:length]), WORK)
    assert list(times or {}) == [word[5:] for word in WORDS[:length] if word.startswith("kept")]


def test_a_module_is_loaded_until_the_first_call():
    assert load_time([(0.5, "load"), (2.0, "ready scored"), (4.0, "call scored")]) == 1.5


@pytest.mark.parametrize(
    "words",
    [
        ["ready scored", "call scored", *WORDS],
        ["load", "ready scored", "call scored", "ready scored", "call scored", "done scored"],
        ["load", "ready scored", "call scored", "done scored", "done scored"],
        ["load", "ready scored", "call scored", "done scored", "call scored", "done scored"],
        [*WORDS, "done other"],
        ["load", "done scored"],
        ["load", "ready scored", "refused scored: File exists"],
        ["load", "ready scored", "call scored", "DONE scored"],
        ["done scored", "load", "ready scored"],
    ],
)
def test_any_other_words_make_times_untrusted(words):
    assert call_times(events(*words), WORK) is None
