"""The samples that evaluations use, read and measured once and kept while they are in use."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.evaluation.scoring import ScoringTargets
from sharp.evaluation.task_folder import EvaluationTask, file_state
from sharp.problems import Problem
from sharp.reference.datasets import DataSet, Inputs, read_inputs, read_reference, read_reference_solution

Array = NDArray[Any]

_KEPT = 3  # the splits of one data set
_SMOKE_SHARE = 10
_SMOKE_TIMES = 5  # as many as a residual takes


@dataclass(frozen=True)
class SampleBatch:
    """What solvers are given of some samples, and, read when first asked for, what they are compared with."""

    problem: Problem
    dataset: DataSet
    rows: range
    inputs: Inputs

    @cached_property
    def answers(self) -> ScoringTargets:
        """Reference and truth at the output times of the inputs."""
        truth = read_reference_solution(self.dataset, self.problem, self.rows)
        reference = read_reference(self.dataset, self.problem, self.rows)
        return ScoringTargets.of(self._until(reference), self._until(truth.arrays) if truth else None)

    def _until(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        t = self.inputs.t
        return {name: values if t is None else values[:, : len(t)] for name, values in arrays.items()}


class SampleCache:
    """Keeps the samples used last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], SampleBatch] = OrderedDict()

    def samples(self, task: EvaluationTask) -> SampleBatch:
        """Return the samples of a task; raises `DataError` where problem or data are no longer those of the request."""
        request = task.request
        if file_state(task.dataset.path) != task.file_state:
            raise DataError(
                f"{task.dataset.path} has changed since the run began; its results cannot be compared."
            )
        key = (request.problem, request.data, task.dataset.path, task.file_state, request.split, task.samples)
        found = self._kept.pop(key, None) or _read(task)
        self._kept[key] = found
        while len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return found


def _read(task: EvaluationTask) -> SampleBatch:
    request, problem = task.request, task.problem()
    if problem.label != request.problem:
        raise DataError(f"The request is for problem {request.problem}, but came with {problem.label}.")
    if task.dataset.label != request.data:
        raise DataError(f"The request is for data {request.data}, but came with {task.dataset.label}.")
    rows = range(*task.samples)
    inputs = read_inputs(task.dataset, problem, rows)
    return SampleBatch(
        problem, task.dataset, rows, truncate_times(inputs) if request.split == "smoke" else inputs
    )


def truncate_times(inputs: Inputs) -> Inputs:
    """Return the inputs with the first tenth of the output times, but no fewer than five."""
    if inputs.t is None:
        return inputs
    return replace(inputs, t=inputs.t[: max(_SMOKE_TIMES, -(-len(inputs.t) // _SMOKE_SHARE))])
