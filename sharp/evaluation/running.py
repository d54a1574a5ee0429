"""Running the calls that a request asks for, in one process or in several that share the samples.

Samples do not depend on each other, so that the parts together are exactly the whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpc.sandbox import SandboxResult
from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.candidate import CallResult, CandidateRun, run_candidate
from sharp.evaluation.checks import with_uneven_times
from sharp.evaluation.machine import Runner
from sharp.evaluation.protocol import CandidateFailure, EvaluationRequest
from sharp.evaluation.worker_context import SampleBatch, WorkerContext
from sharp.problems import Problem
from sharp.reference import Inputs, all_metrics, coarsened

Array = NDArray[Any]

SCORED = "scored"
GRID = "second-grid"
TIMES = "non-uniform-times"


def run_samples(request: EvaluationRequest, samples: SampleBatch, context: WorkerContext) -> CandidateRun:
    """Run a candidate on samples, in parts side by side where the request asks for shards.

    A run that turns out to be hopeless is put an end to after a batch of parts; that is then the failure of its first
    call.
    """
    parts = split(len(samples.rows), request.shards)
    if len(parts) == 1:
        return run_work(request, _work(request, samples.problem, samples.inputs), context)
    # On one machine all run at a time, unless hopeless runs are to be stopped.
    on_one_machine = request.shards if request.abort_above is None else request.limits.threads
    at_a_time = min(len(parts), context.executor.width or on_one_machine)
    limits = replace(request.limits, threads=max(1, request.limits.threads // at_a_time))

    def run_part(interpreter: Runner, number: int) -> CandidateRun:
        work = _work(request, samples.problem, part_of(samples.inputs, parts[number]))
        return run_work(replace(request, limits=limits), work, context, interpreter)

    batches: list[list[CandidateRun]] = []
    for start in range(0, len(parts), at_a_time):
        numbers = range(start, min(start + at_a_time, len(parts)))
        batches.append(context.executor.map(run_part, numbers))
        if any(run.first.failure for run in batches[-1]):
            break
        failure = context.executor.broadcast_decision(
            partial(_hopeless, request, samples, batches, parts[numbers[-1]].stop)
        )
        if failure is not None:
            run = merge(batches)
            first = CallResult(failure, dtype=run.first.dtype)
            return replace(run, run_time_s=None, results={**run.results, next(iter(run.results)): first})
    return merge(batches)


def run_smoke(request: EvaluationRequest, samples: SampleBatch, context: WorkerContext) -> CandidateRun:
    """Run a candidate on samples as a smoke run does, whatever the request is for: no program can tell them apart."""
    plain = replace(request, split="smoke", measures=(), repeats=1, shards=1, abort_above=None)
    return run_samples(plain, samples, context)


def run_work(
    request: EvaluationRequest,
    work: CallPlan,
    context: WorkerContext,
    interpreter: Runner | None = None,
) -> CandidateRun:
    """Make all calls in one process, by the worker's own interpreter unless another is given."""
    runner = interpreter or context.interpreter
    with context.scratch() as scratch:
        return run_candidate(request.code, work, request.limits, request.x64, runner, scratch)


def call_of(name: str, problem: Problem, inputs: Inputs) -> SolverCall:
    """Return a call of the solver, with the shapes that it has to return."""
    interface = problem.interface
    # A solver that is given no arrays returns one sample on the grid of the problem.
    axes = interface.returns[0].shape[-len(problem.space) :]
    sizes = {"batch": 1, **dict(zip(axes, problem.grid.points.values(), strict=True))}
    sizes |= {
        symbol: size
        for port in interface.inputs
        for symbol, size in zip(port.shape, inputs.arrays[port.name].shape, strict=True)
    }
    arrays = {port.name: inputs.arrays[port.name] for port in interface.inputs}
    if interface.coordinates is not None and inputs.t is not None:
        arrays[interface.coordinates] = inputs.t
        sizes["T+1"] = len(inputs.t)
    return SolverCall(
        name=name,
        arrays=arrays,
        parameters={name: problem.parameters[name] for name in interface.parameters},
        returns={port.name: tuple(sizes[symbol] for symbol in port.shape) for port in interface.returns},
        varied=tuple(port.name for port in interface.inputs),
    )


def _work(request: EvaluationRequest, problem: Problem, inputs: Inputs) -> CallPlan:
    """Plan the scored call, those of a smoke test that check the interface, and a coarser one if a measure needs it."""
    calls, smoke = [call_of(SCORED, problem, inputs)], request.split == "smoke"
    needed = any(all_metrics()[name].needs_coarse_run for name in request.measures if name in all_metrics())
    if (smoke or needed) and (coarse := coarsened(problem, inputs)) is not None:
        calls.append(call_of(GRID, problem, coarse))
    if smoke and (uneven := with_uneven_times(inputs)) is not None:
        calls.append(call_of(TIMES, problem, uneven))
    return CallPlan(problem.interface.function, tuple(calls), request.repeats)


def _hopeless(
    request: EvaluationRequest, samples: SampleBatch, batches: Sequence[Sequence[CandidateRun]], done: int
) -> CandidateFailure | None:
    """Return a failure where the errors of the first samples alone put the mean over all above the bar."""
    total = len(samples.rows)
    if request.abort_above is None or done == total:
        return None
    target = samples.answers.of_target(request.target)
    assert target is not None, "nothing ranks by the error where there is no reference"
    errors = target.first(done).errors(merge(batches).first.arrays)
    least = math.fsum(errors.per_sample) / total
    if not least > request.abort_above:
        return None
    return CandidateFailure(
        "early_stopped",
        f"It was stopped after {done} of {total} samples: their errors alone make the nRMSE at least {least:.3e}, "
        f"above {request.abort_above:.3e}.",
    )


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
    runs = list(chain.from_iterable(batches))
    first = runs[0]
    if len(runs) == 1:
        return first
    environments: dict[str, Any] = {}
    for run in reversed(runs):
        environments |= run.environment
    repeats = range(min(len(run.repeat_times_s) for run in runs))
    return CandidateRun(
        completed=_together([[run.completed for run in batch] for batch in batches]),
        results={name: _joined([run.results[name] for run in runs]) for name in first.results},
        run_time_s=_in_turn([[run.run_time_s for run in batch] for batch in batches]),
        repeat_times_s=tuple(
            sum(max(run.repeat_times_s[number] for run in batch) for batch in batches) for number in repeats
        ),
        environment=environments,
        load_s=_in_turn([[run.load_s for run in batch] for batch in batches]),
    )


def _together(batches: Sequence[Sequence[SandboxResult]]) -> SandboxResult:
    return replace(
        batches[0][0],
        wall_s=sum(max(part.wall_s for part in batch) for batch in batches),
        cpu_s=sum(part.cpu_s for part in chain.from_iterable(batches)),
        peak_rss_mb=max(sum(part.peak_rss_mb for part in batch) for batch in batches),
    )


def _in_turn(batches: Sequence[Sequence[float | None]]) -> float | None:
    """Return the time that batches took in turn, each as long as its slowest; None where one is not known."""
    times = [[time for time in batch if time is not None] for batch in batches]
    if any(len(known) < len(batch) for known, batch in zip(times, batches, strict=True)):
        return None
    return sum(map(max, times))


def _joined(results: Sequence[CallResult]) -> CallResult:
    failed = next((result for result in results if result.failure), None)
    if failed is not None:
        return failed
    arrays: Mapping[str, Array] = {
        name: np.concatenate([result.arrays[name] for result in results]) for name in results[0].arrays
    }
    types = sorted({result.dtype for result in results if result.dtype})
    return CallResult(None, arrays, ", ".join(types))
