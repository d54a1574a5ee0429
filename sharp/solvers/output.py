"""The solution on the output grid of its problem, as arrays and as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sharp.errors import InputError
from sharp.problems import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.sample_points import evaluate, sample_times

if TYPE_CHECKING:
    import xarray


# A table of more rows than this is of no use to those who read tables.
MOST_ROWS = 100_000


@dataclass(frozen=True)
class Output:
    """Values [fields, times, points along each axis] at `axes` and `times`; not a number outside the domain.

    A steady problem has one time, of no meaning.
    """

    problem: Problem
    axes: tuple[Array, ...]
    times: Array
    values: Array

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of solution.npz by the names of coordinates and fields."""
        problem = self.problem
        steady = problem.time is None
        named = dict(zip(problem.space, self.axes, strict=True))
        if not steady:
            named[str(problem.time_name)] = self.times
        fields = self.values[:, 0] if steady else self.values
        return {**named, **dict(zip(problem.fields, fields, strict=True))}


def output(problem: Problem, solution: DiscreteSolution) -> Output:
    """Return the solution at the points and times that the specification asks for."""
    axes, times = output_axes(problem)
    return Output(problem, axes, times, on_grid(problem, solution, axes, times))


def output_axes(problem: Problem) -> tuple[tuple[Array, ...], Array]:
    """Return the output points along each axis, and the output times; one of no meaning for a steady problem."""
    axes = tuple(axis_points(problem, name, count) for name, count in problem.grid.points.items())
    return axes, sample_times(problem, np.linspace(0, 1, problem.grid.times or 1))


def axis_points(problem: Problem, axis: str, count: int) -> Array:
    """Return the output points along an axis: nodes with both ends, or centres of cells."""
    low, high = problem.bounds[axis]
    shares = np.linspace(0, 1, count) if problem.grid.kind == "nodes" else (np.arange(count) + 0.5) / count
    return low + (high - low) * shares


def on_grid(problem: Problem, solution: DiscreteSolution, axes: tuple[Array, ...], times: Array) -> Array:
    """Return the values [fields, times, points along each axis], not a number outside the domain."""
    points = np.stack([grid.ravel() for grid in np.meshgrid(*axes, indexing="ij")], axis=1)
    inside = problem.domain.inside(points)
    values = np.full((len(problem.fields), len(times), len(points)), np.nan)
    values[:, :, inside] = evaluate(solution, points[inside], times)
    return values.reshape(*values.shape[:2], *(len(axis) for axis in axes))


def npz(found: Output, solution: DiscreteSolution, verdict: str) -> bytes:
    """Return the arrays as an uncompressed npz file, with the eigenvalues under the name of the unknown number.

    The verdict, a sentence, goes with them under `verdict`: values do not leave without what is known of their error.
    """
    arrays = found.arrays()
    if found.problem.specification.eigenvalue is not None:
        arrays[found.problem.specification.eigenvalue.name] = np.array(solution.eigenvalues)
    arrays = {"verdict": np.array(verdict), **arrays}
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]  # names of arrays are free
    return buffer.getvalue()


def dataset(
    problem: Problem,
    solution: DiscreteSolution,
    axes: tuple[Array, ...],
    times: Array,
    facts: Mapping[str, Any],
) -> xarray.Dataset:
    """Return the values on a grid as a data set; `facts` are further attributes.

    Raises `InputError` if xarray is not installed.
    """
    try:
        import xarray
    except ImportError:
        raise InputError('data sets need xarray; install it with: pip install "pde-sharp[xarray]"') from None
    arrays = Output(problem, axes, times, on_grid(problem, solution, axes, times)).arrays()
    names = [*([problem.time_name] if problem.time_name else []), *problem.space]
    units = problem.specification.units

    def variable(name: str, dims: Sequence[str | None]) -> tuple[Sequence[str | None], Array, dict[str, str]]:
        return dims, arrays[name], {"units": units[name]} if name in units else {}

    fields: dict[str, Any] = {name: variable(name, names) for name in problem.fields}
    if problem.specification.eigenvalue is not None:
        fields[problem.specification.eigenvalue.name] = "mode", np.array(solution.eigenvalues)
    return xarray.Dataset(
        fields,
        {name: variable(str(name), [name]) for name in names},
        {"title": problem.title, "problem": problem.label, "method": solution.method, **facts},
    )


def table(found: Output) -> str | None:
    """Return a problem in one space coordinate as CSV: coordinates, then fields; None where that is no small table."""
    problem = found.problem
    if len(problem.space) > 1 or found.values[0].size > MOST_ROWS:
        return None
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    late = [str(problem.time_name)] if problem.time is not None else []
    writer.writerow([*late, *problem.space, *problem.fields])
    for k, time in enumerate(found.times):
        for i, x in enumerate(found.axes[0]):
            numbers = [*([time] if late else []), x, *found.values[:, k, i]]
            writer.writerow([repr(float(number)) for number in numbers])
    return buffer.getvalue()
