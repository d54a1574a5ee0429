"""The two files by which an evaluation is handed to a worker and its result comes back.

request.json   what to run, on which samples of which file, under which limits
result.json    put there by rename: the evaluation, a few curves of the first sample (an NPZ, see `picture`, in
               base64; empty where there is none), the task that it answers, and a checksum

There are no others: shared file systems bear few files, and a sweep has many evaluations.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from hpc.files import write_atomic
from hpc.journal import canonical_json, effect_key
from sharp.evaluation.protocol import Evaluation, EvaluationRequest
from sharp.problems import Problem, parse_problem
from sharp.reference.datasets import DataSet


@dataclass(frozen=True)
class EvaluationTask:
    """An evaluation and all that a worker needs, which the controller has checked already.

    `specification` is the problem as written, `file_state` size and time of change of the data file when it
    was hashed, `samples` the first sample and the one after the last.
    """

    request: EvaluationRequest
    specification: Mapping[str, Any]
    dataset: DataSet
    file_state: tuple[int, int]
    samples: tuple[int, int]

    @property
    def digest(self) -> str:
        """SHA-256 of what decides the result: the request and the samples, not where the file lies."""
        return sha256(canonical_json([self.request.to_json(), self.samples]).encode()).hexdigest()

    def problem(self) -> Problem:
        """Build the problem."""
        return parse_problem(json.dumps(self.specification), "request.json")


def file_state(path: Path) -> tuple[int, int]:
    """Return size in bytes and time of change in ns of a file: they tell whether it is still the same."""
    state = path.stat()
    return state.st_size, state.st_mtime_ns


def task_folder(run_dir: Path, request: EvaluationRequest) -> Path:
    """Return the folder of an evaluation within a run."""
    return run_dir / "tasks" / effect_key("evaluate", request.to_json())[:16]


def request_file(task: EvaluationTask) -> bytes:
    """Return `request.json`."""
    return json.dumps(asdict(task), indent=1, default=str).encode()


def write_task(folder: Path, task: EvaluationTask) -> None:
    """Write `request.json`."""
    write_atomic(folder / "request.json", request_file(task))


def read_task(folder: Path) -> EvaluationTask:
    """Read `request.json`; raises `OSError`, `ValueError`, `KeyError` or `TypeError` where it is not one."""
    fields = json.loads((folder / "request.json").read_bytes())
    request, dataset = fields["request"], fields["dataset"]
    truth_path = dataset["truth_path"] and Path(dataset["truth_path"])
    return EvaluationTask(
        request=EvaluationRequest.from_json(request),
        specification=fields["specification"],
        dataset=DataSet(**{**dataset, "path": Path(dataset["path"]), "truth_path": truth_path}),
        file_state=tuple(fields["file_state"]),
        samples=tuple(fields["samples"]),
    )


def result_file(task: EvaluationTask, evaluation: Evaluation, picture: bytes) -> bytes:
    """Return `result.json`."""
    content = {
        "task": task.digest,
        "evaluation": evaluation.to_json(),
        "picture": b64encode(picture).decode(),
    }
    return json.dumps({**content, "sha256": _digest(content)}, indent=1).encode()


def write_result(folder: Path, task: EvaluationTask, evaluation: Evaluation, picture: bytes = b"") -> None:
    """Put `result.json` there; it survives a crash from then on."""
    write_atomic(folder / "result.json", result_file(task, evaluation, picture))


def read_result(folder: Path, task: EvaluationTask) -> Evaluation | None:
    """Return the evaluation of exactly this task if it is there and undamaged, else None."""
    try:
        result = _verified(folder)
        return Evaluation.from_json(result["evaluation"]) if result["task"] == task.digest else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def read_picture(folder: Path) -> bytes:
    """Return the picture beside a result; empty where there is none, or the result is gone or damaged."""
    try:
        return b64decode(_verified(folder)["picture"], validate=True)
    except (OSError, ValueError, KeyError, TypeError):
        return b""


def _verified(folder: Path) -> dict[str, Any]:
    """Return what `result.json` holds; raises what `read_result` catches where it is not there or not intact."""
    result: dict[str, Any] = dict(json.loads((folder / "result.json").read_bytes()))
    if result.pop("sha256") != _digest(result):
        raise ValueError("its checksum does not fit")
    return result


def _digest(content: Any) -> str:
    return sha256(canonical_json(content).encode()).hexdigest()
