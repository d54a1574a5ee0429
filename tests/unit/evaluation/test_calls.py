"""Times of calls are believed only where the words on the private pipe are exactly the harness's."""

from __future__ import annotations

import numpy as np
import pytest

from sharp.evaluation.calls import CallPlan, SolverCall, call_times, load_time

FIRST = SolverCall("scored", {"a": np.zeros(2)}, {"beta": 1.0}, {"u": (2,)})
OTHER = SolverCall("other", {"a": np.ones(3)}, {}, {"u": (3,)})
WORK = CallPlan("solver", (FIRST, OTHER), repeats=2)
NAMES = ("scored", "repeat-1", "other")
WORDS = ["load", *(f"{word} {name}" for name in NAMES for word in ("ready", "call", "done"))]
END = len(WORDS) + 0.5


def events(*words):
    return [(float(moment), word) for moment, word in enumerate(words)]


def test_the_first_call_is_repeated_before_the_others():
    assert [name for name, _ in WORK.sequence()] == ["scored", "repeat-1", "other"]
    assert WORK.repetitions == ("repeat-1",)


def test_repetitions_share_the_input_files_of_the_first_call():
    calls = WORK.description()["calls"]
    assert calls[0]["arrays"] == calls[1]["arrays"] == {"a": "input-scored-a.npy"}
    assert calls[2]["arrays"] == {"a": "input-other-a.npy"}


def test_times_lie_between_the_words_of_a_call():
    assert call_times(events(*WORDS), WORK, END) == {"scored": 1.0, "repeat-1": 1.0, "other": 1.0}


@pytest.mark.parametrize("length", range(len(WORDS)))
def test_a_run_that_was_cut_off_keeps_the_times_that_it_has(length):
    times = call_times(events(*WORDS[:length]), WORK, float(length)) or {}
    assert list(times) == [word[5:] for word in WORDS[:length] if word.startswith("done")]


def test_a_module_is_loaded_until_the_first_call():
    assert load_time([(0.5, "load"), (2.0, "ready scored"), (4.0, "call scored")]) == 1.5


def test_calls_that_failed_have_no_time():
    words = [word.replace("done repeat-1", "failed repeat-1") for word in WORDS]
    assert call_times(events(*words), WORK, END) == {"scored": 1.0, "other": 1.0}


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
    assert call_times(events(*words), WORK, END) is None


@pytest.mark.parametrize("late", range(4, len(WORDS) + 1))
def test_long_work_after_a_call_that_is_said_to_be_done_makes_times_untrusted(late):
    moments = [moment + 60 * (moment >= late) for moment in range(len(WORDS) + 1)]
    seen = [(float(moment), word) for moment, word in zip(moments[:-1], WORDS, strict=True)]
    times = call_times(seen, WORK, float(moments[-1]))
    assert (times is None) == WORDS[late - 1].startswith("done")
