"""What a data set is worth as a reference: its distance from the truth, and its residual in the equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.datasets import (
    DataSet,
    Inputs,
    Truth,
    open_dataset,
    read_inputs,
    read_reference,
    read_truth,
)
from sharp.numerics.blocks import Progress
from sharp.numerics.initial import InitialSet
from sharp.numerics.reference import solve_truth
from sharp.numerics.spectral import relative_l2
from sharp.problems.problem import Problem

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True)
class Audit:
    """Distances between a data set and the truth, sample by sample, all relative.

    `error` is ||data - truth|| / ||truth||, the error of the data themselves; `floor` is ||truth - data|| /
    ||data||, the nRMSE that the truth scores against the data; `truth_error` is the estimated error of the
    truth. `residual` and `truth_residual` are the normalised PDE residuals of both on the output grid, the
    second of which shows what the grid alone contributes.
    """

    label: str
    samples: tuple[int, ...]
    error: tuple[float, ...]
    floor: tuple[float, ...]
    truth_error: tuple[float, ...]
    residual: tuple[float, ...]
    truth_residual: tuple[float, ...]
    residual_note: str

    def to_json(self) -> dict[str, Any]:
        """Return the plain form, with means."""
        means = {name: fmean(getattr(self, name)) for name in _MEASURES}
        return {**asdict(self), "mean": means}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Audit:
        """Rebuild an audit from its plain form; raises `KeyError` or `TypeError` where it is not one."""
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in data.items()
        }
        del fields["mean"]
        return cls(**fields)


_MEASURES = ("error", "floor", "truth_error", "residual", "truth_residual")


def audit_dataset(
    problem: Problem, path: Path, *, samples: int = 8, first: int = 0, progress: Progress | None = None
) -> Audit:
    """Compare samples of a data file, from `first` on, with their truth, solving for it where none is stored.

    Raises `DataError` for a file that does not hold data of the problem.
    """
    from sharp.numerics.residual import residual

    dataset = open_dataset(path, problem)
    rows = range(first, min(first + samples, dataset.n_samples))
    inputs, data = read_inputs(dataset, problem, rows), read_reference(dataset, problem, rows)
    truth = _truth(dataset, problem, inputs, rows, progress)
    residuals = [
        [residual(problem, _sample(inputs, row), _rows(arrays, row)) for row in range(len(rows))]
        for arrays in (data, truth.arrays)
    ]
    stacked, true = _stacked(data), _stacked(truth.arrays)
    return Audit(
        label=dataset.label,
        samples=tuple(rows),
        error=tuple(relative_l2(stacked, true).tolist()),
        floor=tuple(relative_l2(true, stacked).tolist()),
        truth_error=tuple(truth.error.tolist()),
        residual=tuple(found.value for found in residuals[0]),
        truth_residual=tuple(found.value for found in residuals[1]),
        residual_note=residuals[0][0].note,
    )


def audit_in_words(audit: Audit) -> str:
    """Render an audit as a table, one line a sample, with the means and what they mean."""
    columns = [getattr(audit, name) for name in _MEASURES]
    samples = zip(audit.samples, *columns, strict=True)
    lines = [
        f"Audit of {audit.label}",
        f"{'sample':>8}{'error':>11}{'floor':>11}{'truth error':>13}{'residual':>11}{'of truth':>11}",
        *(_row(sample, values) for sample, *values in samples),
        _row("mean", [fmean(column) for column in columns]),
        f"Residual of sample {audit.samples[0]}: {audit.residual_note}",
        f"The data are {fmean(audit.error):.2e} away from the solution of the equation, which scores",
        f"{fmean(audit.floor):.2e} (nRMSE) against them; a lower score imitates the errors of the data.",
    ]
    return "\n".join(lines)


def _row(name: object, values: Sequence[float]) -> str:
    error, floor, truth_error, *residuals = (f"{value:.2e}" for value in values)
    return f"{name!s:>8}{error:>11}{floor:>11}{truth_error:>13}{residuals[0]:>11}{residuals[1]:>11}"


def _truth(
    dataset: DataSet, problem: Problem, inputs: Inputs, rows: range, progress: Progress | None
) -> Truth:
    stored = read_truth(dataset, problem, rows)
    return stored or solve_truth(problem, InitialSet(inputs.arrays), inputs.t, progress)


def _stacked(arrays: Arrays) -> NDArray[np.float64]:
    """Put all fields into one array [n, fields, ...], over which errors are taken together."""
    return np.stack([np.asarray(values, np.float64) for values in arrays.values()], axis=1)


def _sample(inputs: Inputs, row: int) -> Inputs:
    return Inputs(_rows(inputs.arrays, row), inputs.t, inputs.x)


def _rows(arrays: Arrays, row: int) -> dict[str, NDArray[Any]]:
    return {name: values[row : row + 1] for name, values in arrays.items()}
