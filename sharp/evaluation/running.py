"""Running the calls that a request asks for, in one process or in several that share the samples."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from sharp.evaluation.calls import CallPlan, SolverCall
from sharp.evaluation.candidate import COMPILED, CallResult, CandidateRun, run_candidate
from sharp.evaluation.checks import with_uneven_times
from sharp.evaluation.machine import Runner
from sharp.evaluation.protocol import CandidateFailure, EvaluationRequest
from sharp.evaluation.sample_cache import SampleBatch
from sharp.evaluation.shards import merge, part_of, split
from sharp.evaluation.worker_context import WorkerContext
from sharp.problems import Problem
from sharp.problems.limits import ResourceLimits
from sharp.reference.coarse_grid import coarsened
from sharp.reference.datasets import Inputs
from sharp.reference.feedback import all_metrics

SCORED = "scored"
GRID = "second-grid"
TIMES = "non-uniform-times"


def run_samples(request: EvaluationRequest, samples: SampleBatch, workshop: WorkerContext) -> CandidateRun:
    """Run a candidate on samples; where it was abandoned, that is the failure of its first call."""
    parts = split(len(samples.rows), request.shards)
    if len(parts) == 1:
        return run_work(request, _work(request, samples.problem, samples.inputs), workshop)
    return _run_parts(request, samples, parts, workshop)


def run_work(request: EvaluationRequest, work: CallPlan, workshop: WorkerContext) -> CandidateRun:
    """Make all calls in one process."""
    return _run_one(request, work, workshop, workshop.interpreter, request.limits)


def call_of(name: str, problem: Problem, inputs: Inputs) -> SolverCall:
    """Return a call of the solver, with the shapes that it has to return."""
    interface = problem.interface
    sizes = {
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
    )


def _work(request: EvaluationRequest, problem: Problem, inputs: Inputs) -> CallPlan:
    calls = [call_of(SCORED, problem, inputs), *_further(request, problem, inputs)]
    return CallPlan(problem.interface.function, tuple(calls), request.repeats)


def _further(request: EvaluationRequest, problem: Problem, inputs: Inputs) -> Iterator[SolverCall]:
    """Yield the calls of a smoke test that check the interface, and that on the coarser grid if a measure needs it."""
    smoke = request.split == "smoke"
    needed = any(all_metrics()[name].needs_coarse_run for name in request.measures if name in all_metrics())
    if (smoke or needed) and (coarse := coarsened(problem, inputs)) is not None:
        yield call_of(GRID, problem, coarse)
    if smoke and (uneven := with_uneven_times(inputs)) is not None:
        yield call_of(TIMES, problem, uneven)


def _run_parts(
    request: EvaluationRequest, samples: SampleBatch, parts: Sequence[range], workshop: WorkerContext
) -> CandidateRun:
    """Run parts side by side, as many at a time as the crew can; put an end to hopeless runs in between."""
    at_a_time = min(len(parts), workshop.crew.width or _width(request))
    limits = replace(request.limits, threads=max(1, request.limits.threads // at_a_time))

    def run_part(interpreter: Runner, number: int) -> CandidateRun:
        work = _work(request, samples.problem, part_of(samples.inputs, parts[number]))
        return _run_one(request, work, workshop, interpreter, limits, number)

    batches: list[list[CandidateRun]] = []
    for start in range(0, len(parts), at_a_time):
        numbers = range(start, min(start + at_a_time, len(parts)))
        batches.append(workshop.crew.map(run_part, numbers))
        if any(run.first.failure for run in batches[-1]):
            break
        failure = workshop.crew.broadcast_decision(
            partial(_hopeless, request, samples, batches, parts[numbers[-1]].stop)
        )
        if failure is not None:
            return _abandoned(merge(batches), failure)
    return merge(batches)


def _width(request: EvaluationRequest) -> int:
    """Return how many parts run at a time on one machine: all, unless hopeless runs are to be stopped."""
    return request.shards if request.abort_above is None else request.limits.threads


def _run_one(
    request: EvaluationRequest,
    work: CallPlan,
    workshop: WorkerContext,
    interpreter: Runner,
    limits: ResourceLimits,
    part: int = 0,
) -> CandidateRun:
    with workshop.scratch(request.code, part) as scratch:
        state = "used" if any(scratch.joinpath(COMPILED).glob("*")) else "empty"
        run = run_candidate(request.code, work, limits, request.x64, interpreter, scratch)
    if "jax" not in run.environment:
        return run
    return replace(run, environment={**run.environment, "compile_cache": state})


def _hopeless(
    request: EvaluationRequest, samples: SampleBatch, batches: Sequence[Sequence[CandidateRun]], done: int
) -> CandidateFailure | None:
    """Return a failure where the errors of the first samples alone put the mean over all above the bar."""
    total = len(samples.rows)
    if request.abort_above is None or done == total:
        return None
    errors = samples.answers.reference.first(done).errors(merge(batches).first.arrays)
    least = math.fsum(errors.per_sample) / total
    if not least > request.abort_above:
        return None
    return CandidateFailure(
        "early_stopped",
        f"It was stopped after {done} of {total} samples: their errors alone make the nRMSE at least {least:.3e}, "
        f"above {request.abort_above:.3e}.",
    )


def _abandoned(run: CandidateRun, failure: CandidateFailure) -> CandidateRun:
    first = next(iter(run.results))
    return replace(
        run, run_time_s=None, results={**run.results, first: CallResult(failure, dtype=run.first.dtype)}
    )
