"""A solution as a file that other programs open, by the ending of its name; what is known of its error is in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.sax.saxutils import escape

import numpy as np

from hpc.files import write_atomic
from sharp.error_messages import valid_values
from sharp.errors import InputError
from sharp.solvers.discrete_solution import DiscreteSolution
from sharp.solvers.grid import Array, Indices
from sharp.solvers.output import Output, dataset, npz, table
from sharp.solvers.verification import Verdict

Files = Mapping[Path, bytes]

NO_MESHIO = "writing VTK files needs meshio, which is not installed: pip install 'pde-sharp[mesh]'"
# Lines, rectangles and boxes of a grid: the corners in the order that VTK asks for, as steps along each axis.
_CELLS: Mapping[int, tuple[str, tuple[tuple[int, ...], ...]]] = {
    1: ("line", ((0,), (1,))),
    2: ("quad", ((0, 0), (1, 0), (1, 1), (0, 1))),
    3: (
        "hexahedron",
        tuple((*corner, up) for up in (0, 1) for corner in ((0, 0), (1, 0), (1, 1), (0, 1))),
    ),
}


def check_ending(path: Path) -> None:
    """Raise `InputError` for a name that does not end as one of the formats does."""
    if path.suffix not in WRITERS:
        raise InputError(f"{path}: {valid_values('endings', path.suffix, WRITERS)}")


def save(path: Path, found: Output, solution: DiscreteSolution, verdict: Verdict) -> tuple[Path, ...]:
    """Write the values on the output grid in the format that the name ends with; return the files, the named one first.

    Raises `InputError` for another ending, and where the library that writes a format is not installed.
    """
    check_ending(path)
    files = WRITERS[path.suffix](path, found, solution, verdict)
    for name, content in files.items():
        write_atomic(name, content)
    return tuple(files)


def _npz(path: Path, found: Output, solution: DiscreteSolution, verdict: Verdict) -> Files:
    return {path: npz(found, solution, verdict.headline)}


def _csv(path: Path, found: Output, _: DiscreteSolution, verdict: Verdict) -> Files:
    return {path: table(found, verdict.headline).encode()}


def _netcdf(path: Path, found: Output, solution: DiscreteSolution, verdict: Verdict) -> Files:
    # SciPy writes NetCDF 3, which everything reads, without one library more.
    whole = dataset(found, solution, verdict)
    return {path: bytes(whole.to_netcdf(engine="scipy"))}


def _vtu(path: Path, found: Output, _: DiscreteSolution, verdict: Verdict) -> Files:
    """Return a file; for a problem in time a list that ParaView opens, and a file for each time."""
    if found.problem.time is None:
        return {path: _vtu_file(found, 0, verdict)}
    digits = len(str(len(found.times) - 1))
    names = [path.with_name(f"{path.stem}-{number:0{digits}}.vtu") for number in range(len(found.times))]
    steps = [{"name": name.name, "time": time} for name, time in zip(names, found.times, strict=True)]
    series = json.dumps({"file-series-version": "1.0", "files": steps}, indent=1)
    files = {name: _vtu_file(found, number, verdict) for number, name in enumerate(names)}
    return {path.with_name(f"{path.name}.series"): series.encode(), **files}


def _vtu_file(found: Output, number: int, verdict: Verdict) -> bytes:
    """Return the values at one time on the cells of the output grid that lie in the domain whole."""
    try:
        import meshio
    except ImportError:
        raise InputError(NO_MESHIO) from None

    points = np.stack([grid.ravel() for grid in np.meshgrid(*found.axes, indexing="ij")], axis=1)
    values = found.values[:, number].reshape(len(found.values), -1)
    kind, cells = _cells(tuple(map(len, found.axes)), np.all(np.isfinite(values), axis=0))
    used, corners = np.unique(cells, return_inverse=True)
    space = np.zeros((len(used), 3))
    space[:, : points.shape[1]] = points[used]
    data = {name: value[used] for name, value in zip(found.problem.fields, values, strict=True)}
    mesh = meshio.Mesh(space, [(kind, corners.reshape(cells.shape))], data)
    facts: dict[str, float] = {"verified": int(verdict.verified)}
    if isfinite(verdict.error):
        facts["error"] = verdict.error
    if found.problem.time is not None:
        facts["TimeValue"] = float(found.times[number])
    with TemporaryDirectory() as folder:
        name = Path(folder) / "a.vtu"
        meshio.write(name, mesh)
        return _with_facts(name.read_bytes(), facts, verdict.headline)


def _cells(shape: tuple[int, ...], inside: Array) -> tuple[str, Indices]:
    """Return the kind of the cells of a grid, and the places of the corners of those whose corners are all inside."""
    kind, steps = _CELLS[len(shape)]
    places = np.arange(np.prod(shape)).reshape(shape)
    corners = [
        places[tuple(slice(step, size - 1 + step) for step, size in zip(corner, shape, strict=True))].ravel()
        for corner in steps
    ]
    cells = np.stack(corners, axis=1)
    return kind, cells[np.all(inside[cells], axis=1)]


def _with_facts(file: bytes, facts: Mapping[str, float], headline: str) -> bytes:
    """Return a VTK file with numbers as field data, which meshio does not write, and a sentence as a comment."""
    arrays = "".join(
        f'<DataArray type="{"Int64" if isinstance(value, int) else "Float64"}" Name="{name}" NumberOfTuples="1" '
        f'format="ascii">{value!r}</DataArray>'
        for name, value in facts.items()
    )
    comment = f"<!-- {escape(headline).replace('--', '- -')} -->"
    whole = f"{comment}<UnstructuredGrid><FieldData>{arrays}</FieldData>"
    return file.replace(b"<UnstructuredGrid>", whole.encode(), 1)


Writer = Callable[[Path, Output, DiscreteSolution, Verdict], Files]
WRITERS: Mapping[str, Writer] = {".csv": _csv, ".nc": _netcdf, ".npz": _npz, ".vtu": _vtu}
