"""The solution on the output grid of its problem, as arrays and as files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sharp.document import one_line
from sharp.errors import InputError
from sharp.problems import Problem
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array
from sharp.solvers.quantities import QuantityEstimate
from sharp.solvers.sample_points import evaluate, sample_times
from sharp.solvers.verification import Verdict

if TYPE_CHECKING:
    import xarray


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
    listed = problem.grid.at
    axes = tuple(
        np.array(listed[name]) if name in listed else axis_points(problem, name, count)
        for name, count in problem.grid.points.items()
    )
    if problem.time_name in listed:
        return axes, np.array(listed[str(problem.time_name)])
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


def dataset(found: Output, solution: DiscreteSolution, verdict: Verdict) -> xarray.Dataset:
    """Return the values on a grid as a data set, with error and verdict among its attributes.

    Raises `InputError` if xarray is not installed.
    """
    try:
        import xarray
    except ImportError:
        raise InputError('data sets need xarray; install it with: pip install "pde-sharp[xarray]"') from None
    problem, arrays = found.problem, found.arrays()
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
        {
            "title": problem.title,
            "problem": problem.label,
            "method": solution.method,
            "error": verdict.error,
            "verdict": verdict.status,
            "reason": verdict.reason,
        },
    )


def probe_values(problem: Problem, solution: DiscreteSolution) -> dict[str, Array]:
    """Return the values [fields, times] at each probe point, at the output times."""
    _, times = output_axes(problem)
    if not problem.grid.probes:
        return {}
    values = evaluate(solution, np.array(list(problem.grid.probes.values())), times)
    return {name: values[:, :, number] for number, name in enumerate(problem.grid.probes)}


def probe_table(problem: Problem, solution: DiscreteSolution, verdict: str) -> str:
    """Return the values at the probe points as CSV, the verdict before it: probe, coordinates, time, fields."""
    late = [str(problem.time_name)] if problem.time is not None else []
    _, times = output_axes(problem)
    rows = [
        [name, *problem.grid.probes[name], *([time] if late else []), *values[:, k]]
        for name, values in probe_values(problem, solution).items()
        for k, time in enumerate(times)
    ]
    return f"# {one_line(verdict)}\n{_csv(['probe', *problem.space, *late, *problem.fields], rows)}"


def quantity_table(quantities: Mapping[str, QuantityEstimate]) -> str:
    """Return quantities as CSV: name, value, error, unit, whether it is verified, and what it is."""
    rows = [
        [each.name, each.value, each.error, each.unit or "", str(each.verified).lower(), each.note]
        for each in quantities.values()
    ]
    return _csv(["name", "value", "error", "unit", "verified", "what"], rows)


def _csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    for row in rows:
        writer.writerow([cell if isinstance(cell, str) else repr(float(cell)) for cell in row])
    return buffer.getvalue()


def table(found: Output, verdict: str) -> str:
    """Return the values as CSV, the verdict as a comment before it: time, coordinates, fields, a row for each point.

    Points outside the domain have no row.
    """
    problem = found.problem
    late = [str(problem.time_name)] if problem.time is not None else []
    points = np.stack([grid.ravel() for grid in np.meshgrid(*found.axes, indexing="ij")], axis=1)
    values = found.values.reshape(*found.values.shape[:2], -1)
    inside = np.flatnonzero(np.all(np.isfinite(values), axis=(0, 1)))
    rows = (
        [*([time] if late else []), *points[i], *values[:, k, i]]
        for k, time in enumerate(found.times)
        for i in inside
    )
    return f"# {one_line(verdict)}\n{_csv([*late, *problem.space, *problem.fields], rows)}"
