"""`result.json` of a trained operator: its scores and all that they depend on."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from hpc.files import write_atomic
from sharp.errors import DataError
from sharp.neural.operator import TrainingConfig
from sharp.neural.training import Epoch
from sharp.reference import data_home

RESULT = "result.json"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SplitScore(_Section):
    """Scores of one split of a data set, formed as a solver's (`sharp.evaluation.scoring`).

    `samples` are the first row and the one after the last. `nrmse` is the error against the data set, `nrmse_reference`
    that against the solution and `floor` the data set's own distance from it. `unchanged` is the error against the data
    of an initial state that never changes, and `predict_s` the seconds of the prediction, with compilation.
    """

    samples: tuple[int, int]
    nrmse: float
    nrmse_reference: float | None
    data_error: float | None
    unchanged: float
    predict_s: float


class TrainedResult(_Section):
    """A trained operator: what it was trained on and how, how long that took, and how well it does."""

    form: Literal[2] = 2
    method: str
    problem: str
    data: str
    training_data: str
    settings: TrainingConfig
    parameters: int
    validation: SplitScore
    test: SplitScore
    history: tuple[Epoch, ...]
    training_s: float
    software: dict[str, str]
    device: str


def write_result(folder: Path, result: TrainedResult) -> None:
    """Write the result of a finished training."""
    write_atomic(folder / RESULT, result.model_dump_json(indent=1).encode() + b"\n")


def read_result(folder: Path) -> TrainedResult | None:
    """Read the result of a training, None where it has not finished; raises `DataError` for a file of another form."""
    path = folder / RESULT
    if not path.exists():
        return None
    try:
        return TrainedResult.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise DataError(f"{path}: {place}: {first['msg']}") from None


def home() -> Path:
    """Return the folder that holds trainings unless they are given one of their own."""
    return data_home() / "neural"


def trained_rows(folders: Iterable[Path] = ()) -> tuple[TrainedResult, ...]:
    """Return what was trained in the default folder and in others, sorted by problem and settings."""
    places = [*sorted(home().glob("*")), *folders]
    found = [result for place in places if (result := read_result(place)) is not None]
    return tuple(sorted(found, key=lambda row: (row.problem, row.method, row.model_dump_json())))
