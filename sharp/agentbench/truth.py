"""What solutions are held against: the values of a case on a fixed set of points that nothing else uses."""

from __future__ import annotations

import io
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from hpc.files import make_directory, write_atomic
from sharp.agentbench.cases import Case
from sharp.errors import DataError
from sharp.problems.problem import Problem
from sharp.solving.exact import known_eigenvalues
from sharp.solving.given import given
from sharp.solving.samples import evaluate, interior, moments

Array = NDArray[np.float64]

TOLERANCE = 1e-3
"""The relative L2 error up to which a solution counts as one."""
COMPUTED = 0.01 * TOLERANCE
"""The estimated error that a computed reference may have: what is measured is then the solution's."""

# No check of a solution begins its sequence of points here, or looks at these moments.
_POINTS, _START = 1500, 40009
_MOMENTS = (0.013, 0.09, 0.21, 0.37, 0.5, 0.61, 0.78, 0.94, 1.0)


@dataclass(frozen=True)
class Truth:
    """The values [fields, k, m] at points [m, d] and times [k], or the lowest eigenvalues, ascending."""

    points: Array
    times: Array
    values: Array | None
    eigenvalues: tuple[float, ...] = ()


def truth_of(case: Case, folder: Path) -> Truth:
    """Return the exact values of a case, or those of its computed reference, which is kept in a folder.

    Raises `DataError` where the reference cannot be computed well enough to judge by it.
    """
    problem, reference = case.problem, case.problem.specification.reference
    points, times = interior(problem, _POINTS, start=_START), moments(problem, _MOMENTS)
    if reference.eigenvalues:
        return Truth(points, times, None, known_eigenvalues(problem))
    if reference.kind == "exact":
        exact = [given(problem, reference.value[name])(points, times) for name in problem.fields]
        return Truth(points, times, np.stack(exact))
    path = folder / f"{problem.id}-{problem.hash[:12]}.npz"
    values = _kept(path)
    if values is None:
        values = _computed(problem, points, times)
        make_directory(folder)
        _keep(path, values)
    return Truth(points, times, values)


def _computed(problem: Problem, points: Array, times: Array) -> Array:
    from sharp.solving.answer import Options, answer

    wanted = problem.specification.reference
    options = Options(wanted.method, wanted.tolerance, wanted.resolution, cross_check=False)
    found = answer(problem, options)
    error = found.trial.refinement.error if found.trial else np.inf
    if found.solution is None or error > COMPUTED:
        raise DataError(
            f"case '{problem.id}': expected a computed reference with an error of at most {COMPUTED:g}, "
            f"found {error:.1e}: {found.sentence}"
        )
    return evaluate(found.solution, points, times)


def _kept(path: Path) -> Array | None:
    """Return the values in a file, None where there is none that can be read."""
    try:
        with np.load(path) as arrays:
            return np.asarray(arrays["values"], dtype=float)
    except (OSError, ValueError, KeyError, BadZipFile):
        return None


def _keep(path: Path, values: Array) -> None:
    data = io.BytesIO()
    np.savez(data, values=values)
    write_atomic(path, data.getvalue())
