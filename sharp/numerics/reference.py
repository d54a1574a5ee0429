"""Making and importing reference data: the problem families, their generators, and complete files or none."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import sharp
from sharp.errors import DataError
from sharp.evaluation.datasets import (
    TRUTH_ERROR,
    TRUTH_SAMPLES,
    DataSet,
    Truth,
    open_dataset,
    read_inputs,
    truth_file,
    uniform_points,
)
from sharp.evaluation.hdf5 import content_hash, data_home, replacing, write_arrays
from sharp.numerics.blocks import Progress
from sharp.numerics.initial import InitialSet
from sharp.problems.problem import Problem

Array = NDArray[Any]
ProgressCallback = Progress
Made = Literal["pdebench", "truth"]

FAMILIES: Mapping[str, str] = {
    "advection": "sharp.numerics.advection",
    "burgers": "sharp.numerics.burgers",
    "reaction-diffusion": "sharp.numerics.reaction_diffusion",
    "navier-stokes-1d": "sharp.numerics.navier_stokes",
    "darcy-2d": "sharp.numerics.darcy",
}
"""Modules with `sample_initial`, `solve_truth`, `solve_pdebench` and the names of their schemes.

Of other problems the solution is known where it can be solved for from expressions (`sharp.numerics.stated`).
"""


def family_module(problem: Problem) -> ModuleType:
    """Load the module that solves for values on a grid; raises `DataError` where there is none."""
    if problem.family not in FAMILIES:
        raise DataError(
            f"{problem.id}: solutions follow from values on a grid for the families {', '.join(FAMILIES)}, found the "
            f"family {problem.family}; make data from the specification (sharp data make), or use a file as it is, "
            "without the truth (evaluation.data)"
        )
    return import_module(FAMILIES[problem.family])


def kinds_of(problem: Problem) -> tuple[Made, ...]:
    """Return the kinds of data that can be made for a problem, the usual one first."""
    return ("pdebench", "truth") if problem.family in FAMILIES else ("truth",)


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
    if path.is_file() and (kind == "truth" or truth_file(path).is_file()):
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
    `truth` data are float64 and hold their own error estimates. The data file appears last, and only
    complete. Raises `DataError` for a kind that cannot be made and for a problem that cannot be solved for.
    """
    if samples < 1:
        raise DataError(f"{path}: expected at least one sample, found {samples}")
    kind, generator = checked_kind(problem, kind), _Generator(problem, progress)
    t, origin = output_times(problem), {"seed": seed}
    with replacing(path) as part:
        if problem.family not in FAMILIES:
            generator.write_stated(part, samples, seed, t)
        elif kind == "truth":
            generator.write_truth(part, _drawn(problem, samples, seed), t, range(samples), origin)
        else:
            initial = _drawn(problem, samples, seed)
            generator.write_published(part, initial, t, origin)
            digest = {"data-hash": content_hash(part)}
            generator.write_truth(truth_file(path), initial, t, range(samples), origin | digest)
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


def _drawn(problem: Problem, samples: int, seed: int) -> InitialSet:
    initial = family_module(problem).sample_initial(problem, samples, seed)
    assert isinstance(initial, InitialSet)
    return initial


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
    family_module(problem)
    generator = _Generator(problem, progress)
    source = open_dataset(file, problem)
    n, head = source.n_samples, min(first, source.n_samples)
    chosen = [*range(head), *range(max(n - last, head), n)]
    if not chosen:
        raise DataError(f"{file}: expected at least one first or last sample to solve for, found none")
    inputs = read_inputs(source, problem, chosen)
    with replacing(dest) as part:
        _link(file, part)
        initial = InitialSet(inputs.arrays)
        generator.write_truth(truth_file(dest), initial, inputs.t, chosen, {"data-hash": source.hash})
    return open_dataset(dest, problem)


def solve_truth(
    problem: Problem, initial: InitialSet, t: Array | None, progress: Progress | None = None
) -> Truth:
    """Solve for the truth at times t, from the initial functions if they are known, else from values."""
    known = {} if initial.evaluate is None else {"evaluate": initial.evaluate}
    truth = family_module(problem).solve_truth(problem, initial.arrays, t, **known, progress=progress)
    assert isinstance(truth, Truth)
    return truth


class _Generator:
    """Writes data files of a problem: solutions, coordinates, and attributes that say how they were made."""

    def __init__(self, problem: Problem, progress: Progress | None) -> None:
        self._problem, self._progress = problem, progress

    def write_published(
        self, path: Path, initial: InitialSet, t: Array | None, origin: Mapping[str, Any]
    ) -> None:
        began, module = time.perf_counter(), family_module(self._problem)
        returns = module.solve_pdebench(self._problem, initial.arrays, t, self._progress)
        arrays = self._arrays(initial.arrays, returns, t, np.float32)
        write_arrays(path, arrays, self._attrs("pdebench", module.SCHEME, "float32", began) | dict(origin))

    def write_truth(
        self,
        path: Path,
        initial: InitialSet,
        t: Array | None,
        samples: Sequence[int],
        origin: Mapping[str, Any],
    ) -> None:
        began, module = time.perf_counter(), family_module(self._problem)
        truth = solve_truth(self._problem, initial, t, self._progress)
        arrays = self._truth_arrays(initial.arrays, truth, t, samples)
        write_arrays(path, arrays, self._attrs("truth", module.TRUTH_SCHEME, "float64", began) | dict(origin))

    def write_stated(self, path: Path, samples: int, seed: int, t: Array | None) -> None:
        """Solve for the stated state and for variations of it; these data are the truth themselves."""
        from sharp.numerics.stated import TRUTH_SCHEME, solve_samples

        began = time.perf_counter()
        solved = solve_samples(self._problem, samples, seed, t, self._progress)
        arrays = self._truth_arrays(solved.inputs, solved.truth, t, range(samples))
        write_arrays(path, arrays, self._attrs("truth", TRUTH_SCHEME, "float64", began) | {"seed": seed})

    def _truth_arrays(
        self, inputs: Mapping[str, Array], truth: Truth, t: Array | None, samples: Sequence[int]
    ) -> dict[str, Array]:
        arrays = self._arrays(inputs, truth.arrays, t, np.float64)
        return arrays | {TRUTH_ERROR: truth.error, TRUTH_SAMPLES: np.asarray(samples)}

    def _arrays(
        self,
        inputs: Mapping[str, Array],
        returns: Mapping[str, Array],
        t: Array | None,
        dtype: type[np.floating],
    ) -> dict[str, Array]:
        """Name the arrays as the problem's files do; inputs that are first frames are left out."""
        data, space = self._problem.data, self._problem.space
        named: dict[str, Array] = {data.inputs[port]: values for port, values in inputs.items()}
        named |= {data.returns[port]: values for port, values in returns.items()}
        points = next(iter(returns.values())).shape[-len(space) :]
        for key, axis, count in zip(data.space_keys, space, points, strict=False):
            named[key] = uniform_points(self._problem, axis, count)
        if data.time_key is not None and t is not None:
            named[data.time_key] = t
        return {key: np.asarray(values, dtype) for key, values in named.items()}

    def _attrs(self, kind: Made, scheme: str, precision: str, began: float) -> dict[str, Any]:
        return {
            "kind": kind,
            "problem": self._problem.label,
            "software": f"pde-sharp {sharp.__version__}",
            "scheme": scheme,
            "precision": precision,
            "wall_s": round(time.perf_counter() - began, 3),
            **self._problem.parameters,
        }


def _link(file: Path, name: Path) -> None:
    """Give a file a second name, or copy it where the filesystem does not allow that."""
    try:
        os.link(file.resolve(), name)
    except OSError:
        shutil.copyfile(file, name)
