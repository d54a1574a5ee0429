"""Parts of the samples put together are the whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpc.sandbox import SandboxResult
from sharp.evaluation.candidate import CallResult, CandidateRun
from sharp.evaluation.protocol import CandidateFailure
from sharp.evaluation.running import merge, part_of, split
from sharp.reference.datasets import Inputs


@given(st.integers(1, 300), st.integers(1, 40))
def test_parts_follow_one_another_and_differ_by_one_at_most(samples, shards):
    parts = split(samples, shards)
    assert [sample for part in parts for sample in part] == list(range(samples))
    assert len(parts) == min(samples, shards)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_a_part_of_the_inputs_has_its_samples_and_all_times():
    inputs = Inputs({"u0": np.arange(12.0).reshape(4, 3)}, np.arange(5.0), np.arange(3.0))
    part = part_of(inputs, range(1, 3))
    np.testing.assert_array_equal(part.arrays["u0"], inputs.arrays["u0"][1:3])
    assert part.t is inputs.t


def run(values, *, seconds=1.0, failure=None, repeats=(), dtype="float64", memory=100.0) -> CandidateRun:
    completed = SandboxResult(0, None, False, False, False, 2 * seconds, 1.0, memory, f"{values}", "", ())
    arrays = {} if failure else {"u": np.asarray(values, dtype)}
    results = {"scored": CallResult(failure, arrays, dtype)}
    return CandidateRun(completed, results, None if failure else seconds, repeats, {"python": "3"})


def test_arrays_follow_in_order_and_batches_take_turns():
    batches = [[run([1.0, 2.0], seconds=1), run([3.0], seconds=4)], [run([4.0], seconds=2, memory=300)]]
    whole = merge(batches)
    np.testing.assert_array_equal(whole.first.arrays["u"], [1, 2, 3, 4])
    assert whole.run_time_s == 4 + 2
    assert whole.completed.wall_s == 8 + 4
    assert whole.completed.cpu_s == 3
    assert whole.completed.peak_rss_mb == 300
    assert whole.completed.stdout == "[1.0, 2.0]"


def test_repeats_are_those_that_every_part_has():
    whole = merge([[run([1.0], repeats=(1.0, 2.0)), run([2.0], repeats=(3.0,))]])
    assert whole.repeat_times_s == (3.0,)


def test_types_are_listed():
    assert merge([[run([1.0], dtype="float32"), run([2.0])]]).first.dtype == "float32, float64"


@pytest.mark.parametrize("place", [0, 1, 2])
def test_one_failure_is_that_of_the_whole(place):
    parts = [run([float(number)]) for number in range(3)]
    parts[place] = run([0.0], failure=CandidateFailure("exception", "no"))
    whole = merge([parts])
    assert whole.first.failure.message == "no"
    assert whole.run_time_s is None
