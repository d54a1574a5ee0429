"""Making and importing reference data: the problem families, their generators, and complete files or none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError
from sharp.problems.problem import Problem
from sharp.reference.chunking import Progress
from sharp.reference.datasets import (
    TRUTH_ERROR,
    TRUTH_SAMPLES,
    DataSet,
    ReferenceSolution,
    open_dataset,
    read_inputs,
    reference_file,
    uniform_points,
)
from sharp.reference.families import FAMILIES, family_of
from sharp.reference.hdf5 import content_hash, data_home, replacing, write_arrays
from sharp.reference.initial import InitialSet
from sharp.version import __version__

Array = NDArray[Any]
ProgressCallback = Progress
Made = Literal["pdebench", "reference"]


def kinds_of(problem: Problem) -> tuple[Made, ...]:
    """Return the kinds of data that can be made for a problem, the usual one first."""
    return ("pdebench", "reference") if problem.family in FAMILIES else ("reference",)


def output_times(problem: Problem) -> NDArray[np.float64] | None:
    """Return the equally spaced output times of a problem, None if it is steady."""
    if problem.time is None or problem.grid.times is None:
        return None
    return np.linspace(*problem.time, problem.grid.times)


def default_dataset(problem: Problem, samples: int, seed: int, kind: Made) -> Path:
    """Return where a generated data set of a problem is kept."""
    return data_home() / f"{problem.id}-{problem.hash[:12]}-n{samples}-s{seed}-{kind}.hdf5"


def ensure_dataset(
    problem: Problem, samples: int, seed: int, kind: Made | None = None, progress: Progress | None = None
) -> DataSet:
    """Open the generated data set at its default place, made first if it or its truth is not there.

    Without a kind it is the usual one of the problem. Raises like `make_dataset`.
    """
    kind = checked_kind(problem, kind)
    path = default_dataset(problem, samples, seed, kind)
    if path.is_file() and (kind == "reference" or reference_file(path).is_file()):
        return open_dataset(path, problem)
    return make_dataset(problem, path, samples=samples, seed=seed, kind=kind, progress=progress)


def make_dataset(
    problem: Problem,
    path: Path,
    *,
    samples: int,
    seed: int,
    kind: Made | None = None,
    progress: Progress | None = None,
) -> DataSet:
    """Generate data from random initial conditions, and their truth; without a kind the usual one of the problem.

    `pdebench` data are float32 and made by the published scheme; their truth is in the companion file.
    `reference` data are float64 and hold their own error estimates. The data file appears last, and only
    complete. Raises `DataError` for a kind that cannot be made and for a problem that cannot be solved for.
    """
    if samples < 1:
        raise DataError(f"{path}: expected at least one sample, found {samples}")
    kind, t = checked_kind(problem, kind), output_times(problem)
    origin: dict[str, Any] = {"seed": seed}
    with replacing(path) as part:
        if problem.family not in FAMILIES:
            _write_generated(problem, part, samples, seed, t, progress)
        else:
            initial = family_of(problem).sample_initial(problem, samples, seed)
            if kind == "reference":
                _write_reference(problem, part, initial, t, range(samples), origin, progress)
            else:
                _write_published(problem, part, initial, t, origin, progress)
                origin |= {"data-hash": content_hash(part)}
                _write_reference(problem, reference_file(path), initial, t, range(samples), origin, progress)
    return open_dataset(path, problem)


def checked_kind(problem: Problem, kind: Made | None) -> Made:
    """Return the kind asked for, or the usual one of the problem; raises `DataError` where it cannot be made."""
    usual, *_ = kinds = kinds_of(problem)
    if kind is not None and kind not in kinds:
        raise DataError(
            f"{problem.id}: data of the kind {kind} are made for the families {', '.join(FAMILIES)}, found the family "
            f"{problem.family}; valid kinds: {', '.join(kinds)}"
        )
    return kind or usual


def import_dataset(
    problem: Problem,
    file: Path,
    dest: Path,
    *,
    first: int = 100,
    last: int = 100,
    progress: Progress | None = None,
) -> DataSet:
    """Take over a data file unchanged (linked, or else copied) with the truth of some of its samples.

    The truth is solved from the initial conditions of the first and the last samples, which serve test and
    validation. Raises `DataError` for files that do not hold data of the problem, and for a problem of no family whose
    solutions follow from values on a grid.
    """
    family_of(problem)
    source = open_dataset(file, problem)
    n, head = source.n_samples, min(first, source.n_samples)
    chosen = [*range(head), *range(max(n - last, head), n)]
    if not chosen:
        raise DataError(f"{file}: expected at least one first or last sample to solve for, found none")
    inputs = read_inputs(source, problem, chosen)
    with replacing(dest) as part:
        _link(file, part)
        initial = InitialSet(inputs.arrays)
        origin = {"data-hash": source.hash}
        _write_reference(problem, reference_file(dest), initial, inputs.t, chosen, origin, progress)
    return open_dataset(dest, problem)


def solve_reference(
    problem: Problem, initial: InitialSet, t: Array | None, progress: Progress | None = None
) -> ReferenceSolution:
    """Solve for the truth at times t, from the initial functions if they are known, else from values."""
    solve = family_of(problem).solve_reference
    return solve(problem, initial.arrays, t, evaluate=initial.evaluate, progress=progress)


def _write_published(
    problem: Problem,
    path: Path,
    initial: InitialSet,
    t: Array | None,
    origin: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    began, family = time.perf_counter(), family_of(problem)
    returns = family.solve_pdebench(problem, initial.arrays, t, progress)
    arrays = _arrays(problem, initial.arrays, returns, t, np.float32)
    write_arrays(path, arrays, _attrs(problem, "pdebench", family.published.name, began) | dict(origin))


def _write_reference(
    problem: Problem,
    path: Path,
    initial: InitialSet,
    t: Array | None,
    samples: Sequence[int],
    origin: Mapping[str, Any],
    progress: Progress | None,
) -> None:
    began = time.perf_counter()
    found = solve_reference(problem, initial, t, progress)
    arrays = _reference_arrays(problem, initial.arrays, found, t, samples)
    scheme = family_of(problem).reference.name
    write_arrays(path, arrays, _attrs(problem, "reference", scheme, began) | dict(origin))


def _write_generated(
    problem: Problem, path: Path, samples: int, seed: int, t: Array | None, progress: Progress | None
) -> None:
    """Solve for the stated state and for variations of it; these data are the reference solution themselves."""
    from sharp.reference.sample_generation import (  # loads what solves from expressions
        SCHEME,
        generate_samples,
    )

    began = time.perf_counter()
    solved = generate_samples(problem, samples, seed, t, progress)
    arrays = _reference_arrays(problem, solved.inputs, solved.truth, t, range(samples))
    write_arrays(path, arrays, _attrs(problem, "reference", SCHEME, began) | {"seed": seed})


def _reference_arrays(
    problem: Problem,
    inputs: Mapping[str, Array],
    found: ReferenceSolution,
    t: Array | None,
    samples: Sequence[int],
) -> dict[str, Array]:
    arrays = _arrays(problem, inputs, found.arrays, t, np.float64)
    return arrays | {TRUTH_ERROR: found.error, TRUTH_SAMPLES: np.asarray(samples)}


def _arrays(
    problem: Problem,
    inputs: Mapping[str, Array],
    returns: Mapping[str, Array],
    t: Array | None,
    dtype: type[np.floating],
) -> dict[str, Array]:
    """Name the arrays as the problem's files do; inputs that are first frames are left out."""
    data, space = problem.data, problem.space
    named: dict[str, Array] = {data.inputs[port]: values for port, values in inputs.items()}
    named |= {data.returns[port]: values for port, values in returns.items()}
    points = next(iter(returns.values())).shape[-len(space) :]
    for key, axis, count in zip(data.space_keys, space, points, strict=False):
        named[key] = uniform_points(problem, axis, count)
    if data.time_key is not None and t is not None:
        named[data.time_key] = t
    return {key: np.asarray(values, dtype) for key, values in named.items()}


def _attrs(problem: Problem, kind: Made, scheme: str, began: float) -> dict[str, Any]:
    return {
        "kind": kind,
        "problem": problem.label,
        "software": f"pde-sharp {__version__}",
        "scheme": scheme,
        "precision": "float32" if kind == "pdebench" else "float64",
        "wall_s": round(time.perf_counter() - began, 3),
        **problem.parameters,
    }


def _link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the filesystem does not allow that."""
    try:
        os.link(file.resolve(), name)
    except OSError:
        shutil.copyfile(file, name)
