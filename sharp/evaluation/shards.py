"""Splitting samples over processes, and putting together what the processes came to.

Samples do not depend on each other, so that the parts together are exactly the whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc.sandbox import SandboxResult
from sharp.evaluation.candidate import CallResult, CandidateRun
from sharp.reference.datasets import Inputs

Array = NDArray[Any]


def split(samples: int, shards: int) -> tuple[range, ...]:
    """Split so many samples into that many ranges in order, sizes equal up to one, none of them empty."""
    parts = min(samples, shards)
    ends = [samples * number // parts for number in range(parts + 1)]
    return tuple(map(range, ends[:-1], ends[1:]))


def part_of(inputs: Inputs, samples: range) -> Inputs:
    """Return the inputs of some samples."""
    rows = slice(samples.start, samples.stop)
    return replace(inputs, arrays={name: values[rows] for name, values in inputs.arrays.items()})


def merge(batches: Sequence[Sequence[CandidateRun]]) -> CandidateRun:
    """Return the run of all samples from those of the parts: batches one after another, their parts side by side.

    Times are those of the slowest part of each batch, memory is that of the largest batch, a call has failed
    where one of its parts has, and what was printed is that of the first part.
    """
    runs = [run for batch in batches for run in batch]
    first = runs[0]
    if len(runs) == 1:
        return first
    environments: dict[str, Any] = {}
    for run in reversed(runs):
        environments |= run.environment
    return CandidateRun(
        completed=_together(batches),
        results={name: _joined([run.results[name] for run in runs]) for name in first.results},
        run_time_s=_in_turn([[run.run_time_s for run in batch] for batch in batches]),
        repeat_times_s=tuple(_repeats(batches)),
        environment=environments,
        load_s=_in_turn([[run.load_s for run in batch] for batch in batches]),
    )


def _together(batches: Sequence[Sequence[CandidateRun]]) -> SandboxResult:
    parts = [[run.completed for run in batch] for batch in batches]
    every = [part for batch in parts for part in batch]
    return replace(
        every[0],
        wall_s=sum(max(part.wall_s for part in batch) for batch in parts),
        cpu_s=sum(part.cpu_s for part in every),
        peak_rss_mb=max(sum(part.peak_rss_mb for part in batch) for batch in parts),
    )


def _in_turn(batches: Sequence[Sequence[float | None]]) -> float | None:
    """Return the time that batches took in turn, each as long as its slowest; None where one is not known."""
    times = [[time for time in batch if time is not None] for batch in batches]
    if any(len(known) < len(batch) for known, batch in zip(times, batches, strict=True)):
        return None
    return sum(map(max, times))


def _repeats(batches: Sequence[Sequence[CandidateRun]]) -> Iterator[float]:
    count = min(len(run.repeat_times_s) for batch in batches for run in batch)
    for number in range(count):
        yield sum(max(run.repeat_times_s[number] for run in batch) for batch in batches)


def _joined(results: Sequence[CallResult]) -> CallResult:
    failed = next((result for result in results if result.failure), None)
    if failed is not None:
        return failed
    arrays: Mapping[str, Array] = {
        name: np.concatenate([result.arrays[name] for result in results]) for name in results[0].arrays
    }
    types = sorted({result.dtype for result in results if result.dtype})
    return CallResult(None, arrays, ", ".join(types))
