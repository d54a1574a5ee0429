"""What the operator learns from, and how the arrays of a problem become its channels and back.

Fields are stacked in the order of the problem's returns; the first output time is the initial state itself, which is
not learnt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.neural.operator import TrainingConfig
from sharp.problems import Problem
from sharp.reference import (
    DataSet,
    Progress,
    data_home,
    family_of,
    get_array,
    opened,
    output_times,
    read_inputs,
    write_arrays,
)

Array = NDArray[np.float32]
BLOCK = 100


@dataclass(frozen=True)
class TrainingSet:
    """Initial states [n, fields, N] and what follows [n, fields * (T - 1), N] on a coarse grid."""

    initial: Array
    later: Array


def training_set(problem: Problem, settings: TrainingConfig, progress: Progress | None = None) -> TrainingSet:
    """Read the generated training samples, made first by the published scheme where they are not there."""
    path = training_file(problem, settings)
    if not path.is_file():
        blocks = zip(*_blocks(problem, settings, progress), strict=True)
        initial, later = map(np.concatenate, blocks)
        attrs: dict[str, str | int | float] = {
            "problem": problem.label,
            "seed": settings.data_seed,
            "stride": settings.stride,
        }
        write_arrays(path, {"initial": initial, "later": later}, attrs)
    with opened(path) as file:
        return TrainingSet(get_array(file, "initial")[:], get_array(file, "later")[:])


def training_file(problem: Problem, settings: TrainingConfig) -> Path:
    """Return where the training samples of a problem are kept."""
    what = f"n{settings.samples}-s{settings.data_seed}-every{settings.stride}"
    return data_home() / f"{problem.id}-{problem.hash[:12]}-{what}-training.hdf5"


def refuse_overlap(
    training: TrainingSet, problem: Problem, dataset: DataSet, rows: range, stride: int
) -> None:
    """Raise `DataError` where a sample that is to be scored was trained on."""
    states = initial_states(problem, read_inputs(dataset, problem, rows).arrays)[..., ::stride]
    known = {state.tobytes() for state in training.initial}
    for sample, state in zip(rows, states, strict=True):
        if state.tobytes() in known:
            raise DataError(
                f"{dataset.path}: sample {sample} is among the training samples; train with another seed, for "
                "a network is scored on what it has never seen"
            )


def initial_states(problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> Array:
    """Stack the inputs [n, N] of all fields: [n, fields, N]."""
    ports = {port.field: port.name for port in problem.interface.inputs}
    names = [ports[port.field] for port in problem.interface.returns]
    return np.stack([np.asarray(arrays[name], np.float32) for name in names], axis=1)


def later_states(problem: Problem, arrays: Mapping[str, NDArray[Any]]) -> Array:
    """Stack the solutions [n, T, N] of all fields without their first frame: [n, fields * (T - 1), N]."""
    frames = [np.asarray(arrays[port.name][:, 1:], np.float32) for port in problem.interface.returns]
    return np.concatenate(frames, axis=1)


def solutions(problem: Problem, initial: Array, later: Array) -> dict[str, Array]:
    """Name the solutions [n, T, N] by return port, from what `initial_states` and `later_states` return."""
    parts = np.split(later, len(problem.interface.returns), axis=1)
    return {
        port.name: np.concatenate([initial[:, [field]], parts[field]], axis=1)
        for field, port in enumerate(problem.interface.returns)
    }


def _blocks(
    problem: Problem, settings: TrainingConfig, progress: Progress | None
) -> Iterator[tuple[Array, Array]]:
    """Solve block by block, so that no more than one of them is ever held on the fine grid."""
    family, t, n = family_of(problem), output_times(problem), settings.samples
    drawn = family.sample_initial(problem, n, settings.data_seed).arrays
    for start in range(0, n, BLOCK):
        arrays = {name: values[start : start + BLOCK] for name, values in drawn.items()}
        solved = family.solve_pdebench(problem, arrays, t, _shifted(progress, start, n))
        coarse = slice(None, None, settings.stride)
        yield initial_states(problem, arrays)[..., coarse], later_states(problem, solved)[..., coarse]


def _shifted(progress: Progress | None, start: int, n: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _, message: progress(start + done, n, f"training {message}")
