"""One evaluation: which calls the request asks for, how they are run, and what the results are worth.

The reference is read only after everything that the candidate started has ended. What the candidate does wrong is a
result; where machine or scorer fail, that is an error.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from hpc.errors import InfrastructureError
from hpc.sandbox import Interpreter
from hpc.slurm import current_job_id
from sharp.evaluation.calls import CallPlan
from sharp.evaluation.candidate import CandidateRun, internal_steps
from sharp.evaluation.checks import check_grid, check_times, fault_of
from sharp.evaluation.courant import courant_note
from sharp.evaluation.preview_arrays import preview_arrays
from sharp.evaluation.protocol import (
    CandidateFailure,
    Convergence,
    Evaluation,
    EvaluationRequest,
    InterfaceCheck,
    Scores,
)
from sharp.evaluation.running import GRID, TIMES, call_of, run_samples, run_work
from sharp.evaluation.sample_cache import SampleBatch
from sharp.evaluation.scoring import score
from sharp.evaluation.task_folder import EvaluationTask
from sharp.evaluation.worker_context import WorkerContext
from sharp.reference.coarse_grid import coarsened
from sharp.reference.datasets import Inputs
from sharp.reference.feedback import compute
from sharp.reference.metrics import MetricInput

Array = NDArray[Any]


def evaluate(task: EvaluationTask, workshop: WorkerContext) -> tuple[Evaluation, bytes]:
    """Run a candidate and score it; return the evaluation and, where there are scores of more than smoke, a picture.

    Raises `DataError` where problem or data are no longer those of the request, `InfrastructureError` where
    the machine failed.
    """
    if task.request.study == "convergence":
        return _study(task, workshop), b""
    samples = workshop.shelf.samples(task)
    return _judged(task, samples, run_samples(task.request, samples, workshop), workshop)


def _judged(
    task: EvaluationTask, samples: SampleBatch, run: CandidateRun, workshop: WorkerContext
) -> tuple[Evaluation, bytes]:
    evaluation = _observed(task.request, run, workshop.interpreter)
    if run.first.failure is not None:
        return evaluation, b""
    verdict = score(samples.problem, samples.inputs, run.first.arrays, samples.answers)
    checks = _checks(samples, run)
    if isinstance(verdict, CandidateFailure):
        return replace(evaluation, failure=_explained(verdict, samples, evaluation), checks=checks), b""
    scores = _measured(task.request, verdict, samples, run, evaluation)
    drawn = b"" if task.request.split == "smoke" else _picture(samples, run)
    return replace(evaluation, scores=scores, checks=checks), drawn


def _explained(failure: CandidateFailure, samples: SampleBatch, evaluation: Evaluation) -> CandidateFailure:
    """Return a failure with, if values became infinite, how the time step compares with explicit limits."""
    if failure.kind != "non_finite":
        return failure
    note = courant_note(samples.problem, samples.inputs, evaluation.internal_dt, evaluation.internal_steps)
    return replace(failure, message=f"{failure.message} {note}".rstrip())


def _checks(samples: SampleBatch, run: CandidateRun) -> tuple[InterfaceCheck, ...]:
    scored = run.first.arrays
    checks = []
    if (result := run.results.get(GRID)) is not None:
        checks.append(check_grid(samples.problem, samples.inputs, scored, result))
    if (result := run.results.get(TIMES)) is not None:
        checks.append(check_times(samples.inputs, scored, result))
    return tuple(checks)


def _measured(
    request: EvaluationRequest,
    scores: Scores,
    samples: SampleBatch,
    run: CandidateRun,
    evaluation: Evaluation,
) -> Scores:
    """Return the scores with the measures that were asked for."""
    if not request.measures:
        return scores
    case = MetricInput(
        problem=samples.problem,
        inputs=samples.inputs,
        prediction=run.first.arrays,
        reference=samples.answers.reference.arrays,
        coarse=_coarse(samples, run),
        internal_dt=evaluation.internal_dt,
        internal_steps=evaluation.internal_steps,
    )
    found = compute(request.measures, case)
    return replace(
        scores,
        measures={name: value.value for name, value in found.items()},
        measure_notes={name: value.note for name, value in found.items() if value.note},
    )


def _coarse(samples: SampleBatch, run: CandidateRun) -> tuple[Inputs, dict[str, Array]] | None:
    result, inputs = run.results.get(GRID), coarsened(samples.problem, samples.inputs)
    if result is None or inputs is None or fault_of(result, inputs.t):
        return None
    return inputs, dict(result.arrays)


def _picture(samples: SampleBatch, run: CandidateRun) -> bytes:
    answers, inputs = samples.answers, samples.inputs
    kinds = {
        "prediction": run.first.arrays,
        "data": answers.reference.arrays,
        "reference": answers.truth.arrays if answers.truth else None,
    }
    return preview_arrays(kinds, inputs.t, inputs.x)


def _study(task: EvaluationTask, workshop: WorkerContext) -> Evaluation:
    """Measure the order of accuracy: one call a grid, coarse to fine, in one process."""
    from sharp.evaluation.convergence import assess, study_inputs

    problem = task.problem()
    grids = [(f"{inputs.x.size}-points", inputs) for inputs in study_inputs(problem)]
    calls = tuple(call_of(name, problem, inputs) for name, inputs in grids)
    run = run_work(task.request, CallPlan(problem.interface.function, calls, grace_s=None), workshop)
    evaluation = _observed(task.request, run, workshop.interpreter)
    if run.first.failure is not None:
        return evaluation
    solutions = [None if result.failure else result.arrays for result in run.results.values()]
    convergence: Convergence = assess(problem, solutions)
    return replace(evaluation, convergence=convergence)


def _observed(request: EvaluationRequest, run: CandidateRun, interpreter: Interpreter) -> Evaluation:
    """Return all of an evaluation but its verdict."""
    dt, steps = internal_steps(run.completed.stdout)
    machine = {
        "hostname": platform.node(),
        "cpu": _cpu(),
        "threads": request.limits.threads,
        "sandbox": interpreter.tier,
        "sandbox_note": interpreter.note,
    }
    job = current_job_id()
    return Evaluation(
        failure=run.first.failure,
        scores=None,
        run_time_s=run.run_time_s,
        total_s=run.completed.wall_s,
        peak_memory_mb=run.completed.peak_rss_mb,
        internal_dt=dt,
        internal_steps=steps,
        dtype=run.first.dtype,
        stdout=run.completed.stdout,
        stderr=run.completed.stderr,
        environment={**run.environment, **machine, **({"job": job} if job else {})},
        repeat_times_s=run.repeat_times_s,
        load_s=run.load_s,
    )


@cache
def _cpu() -> str:
    """Return the processor's model as the kernel names it, or else its architecture."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError as error:
        raise InfrastructureError(f"/proc/cpuinfo could not be read: {error}.") from error
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.machine()
