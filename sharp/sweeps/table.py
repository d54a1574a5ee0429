"""The table of a sweep: one row a cell of the sweep file, tidy, as CSV and Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from hpc.files import write_atomic
from sharp.evaluation.protocol import FAILURE_KINDS
from sharp.sweeps.folder import run_path
from sharp.sweeps.record import SweepRecord
from sharp.sweeps.row import Row

Value = str | int | float | bool | None
LAST = ("data", "software", "prompts", "note")
FIGURES = tuple(field.name for field in fields(Row) if field.name not in {*LAST, "failures", "effects"})
FAILED = {f"failed_{kind}": kind for kind in FAILURE_KINDS}
COLUMNS = ("cell", *FIGURES, *FAILED, *LAST, "path")
"""What every table has; the axes come after `cell`, and go before a column of the same name (`problem`, `method`)."""

NO_PARQUET = (
    "table.parquet is not written, for pyarrow is not installed: pip install 'pde-sharp[tables]'. "
    "table.csv has the same."
)


@dataclass(frozen=True)
class Line:
    """One cell: its name, what it has on each axis, and its row (None: its run has not come to rest yet)."""

    cell: str
    values: Mapping[str, Value]
    row: Row | None


def lines_of(record: SweepRecord) -> tuple[Line, ...]:
    """Return the cells of the newest plan, in the order of the sweep file."""
    return tuple(Line(name, record.cells[name].values, record.rows.get(name)) for name in record.planned)


def axes_of(lines: Sequence[Line]) -> tuple[str, ...]:
    """Return the names of all axes, in the order in which they come up."""
    return tuple(dict.fromkeys(name for line in lines for name in line.values))


def columns_of(lines: Sequence[Line]) -> dict[str, list[Value]]:
    """Return the table by column, None where a cell has nothing; paths are relative to the sweep's directory."""
    axes = axes_of(lines)
    table: dict[str, list[Value]] = {name: [] for name in ("cell", *axes, *COLUMNS[1:])}
    unset = dict.fromkeys(axes)
    for line in lines:
        place = {"cell": line.cell, "path": str(run_path(Path(), line.cell))}
        values = {**_figures(line.row), **place, **unset, **line.values}
        for name, column in table.items():
            column.append(values.get(name))
    return table


def write_csv(path: Path, table: Mapping[str, Sequence[Value]]) -> None:
    """Write the table as CSV; what is missing is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*table.values(), strict=True))
    write_atomic(path, text.getvalue().encode())


def write_parquet(path: Path, table: Mapping[str, Sequence[Value]]) -> bool:
    """Write the table as Parquet; without pyarrow remove an older one, which would be wrong now, and return False."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        path.unlink(missing_ok=True)
        return False
    arrays = {name: pa.array(*_typed(name, values)) for name, values in table.items()}
    data = io.BytesIO()
    parquet.write_table(pa.table(arrays), data)
    write_atomic(path, data.getvalue())
    return True


def _figures(row: Row | None) -> dict[str, Any]:
    if row is None:
        return {"state": "unfinished"}
    plain = {name: _cell(value) for name, value in row.to_json().items()}
    return {**plain, **{column: row.failures.get(kind, 0) for column, kind in FAILED.items()}}


def _cell(value: Any) -> Value:
    """Return a value as it stands in a cell: what has parts is JSON text."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    plain: Value = value
    return plain


def _typed(name: str, values: Sequence[Value]) -> tuple[list[Value], str]:
    """Return values of one type and its name: a column's own even where it is empty, or else that of its values."""
    known = {type(value) for value in values if value is not None}
    own = _KINDS.get(name)
    kinds = {own} if own is not None and known <= {own, int} else known
    if kinds == {bool}:
        return list(values), "bool"
    if kinds == {int}:
        return list(values), "int64"
    if kinds and kinds <= {int, float}:
        return [None if value is None else float(value) for value in values], "float64"
    return [None if value is None else str(value) for value in values], "string"


def _kind(annotation: str) -> type:
    return {"int": int, "float": float, "float | None": float, "bool | None": bool}.get(annotation, str)


_KINDS: dict[str, type] = {
    **dict.fromkeys(COLUMNS, str),
    **{field.name: _kind(str(field.type)) for field in fields(Row)},
    **dict.fromkeys(FAILED, int),
}
