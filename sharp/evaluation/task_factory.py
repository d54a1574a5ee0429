"""What the evaluations of one run are about: a problem, its data, the samples of each split."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from sharp.errors import DataError
from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.task_folder import EvaluationTask, file_state, task_folder
from sharp.problems import Problem
from sharp.problems.serialisation import to_document
from sharp.reference.datasets import DataSet, Splits


class TaskFactory:
    """Makes tasks of requests; the data file is looked at once, at the beginning."""

    def __init__(self, run_dir: Path, problem: Problem, dataset: DataSet, splits: Splits) -> None:
        self._run_dir = run_dir
        self._problem = problem
        self._dataset = dataset
        self._file_state = file_state(dataset.path)
        self._splits = splits

    def folder(self, request: EvaluationRequest) -> Path:
        """Return the task folder of a request."""
        return task_folder(self._run_dir, request)

    def task(self, request: EvaluationRequest) -> EvaluationTask:
        """Return the task of a request; raises `DataError` where it is about another problem or other data."""
        if (request.problem, request.data) != (self._problem.label, self._dataset.label):
            raise DataError(
                f"Expected a request for {self._problem.label} on {self._dataset.label}, "
                f"found one for {request.problem} on {request.data}."
            )
        samples: range = getattr(self._splits, request.split)
        return EvaluationTask(
            request=request,
            specification=self._specification,
            dataset=self._dataset,
            file_state=self._file_state,
            samples=(samples.start, samples.stop),
        )

    @cached_property
    def _specification(self) -> dict[str, object]:
        return to_document(self._problem)
