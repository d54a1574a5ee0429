"""Rows of experiments as pandas data frames, and as CSV and Parquet files.

A frame has one row a run or a trial, with the columns of `RunSummary` or `TrialResult`: dtype `Int64`, `float64`,
`boolean` or `string`, missing values as pandas has them. Columns with parts (`roles`, `best_by_evaluation`, …) hold
Python objects; in files they are JSON text. The names of the axes of an experiment are in `frame.attrs["axes"]`.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pandas import DataFrame, Series

from hpc.files import write_atomic
from sharp.evaluation import FAILURE_KINDS
from sharp.experiments.run_summary import RunSummary, dtypes_of, meanings_of

_UNFLAT = ("failures", "effects", "trial")
_LAST = ("data", "software", "prompts", "note")
FAILED = {f"failed_{kind}": kind for kind in FAILURE_KINDS}


def describe_columns() -> DataFrame:
    """Return name, dtype, unit and meaning of each column that a run has."""
    failed = [
        {"name": name, "dtype": "Int64", "unit": "", "meaning": f"program runs that failed by {kind}"}
        for name, kind in FAILED.items()
    ]
    return DataFrame([*meanings_of(RunSummary), *failed]).set_index("name")


def run_frame(
    rows: Iterable[tuple[Mapping[str, Any], RunSummary | None]],
    axes: Sequence[str] = (),
    first: Sequence[str] = ("cell",),
    more: Mapping[str, str] = {},
) -> DataFrame:
    """Return the frame of runs, each given by extra values and its summary (None: unfinished, with no figures).

    The order of columns is `first`, the axes, the run's figures, then `more`, columns with their dtypes. An axis
    replaces a column of its name.
    """
    dtypes = {**dtypes_of(RunSummary), **dict.fromkeys(FAILED, "Int64"), **more}
    last = (*FAILED, *_LAST, *more)
    figures = [name for name in dtypes if name not in {*last, *_UNFLAT}]
    unset = dict.fromkeys(axes)
    values = [{**_figures(summary), **unset, **extra} for extra, summary in rows]
    names = dict.fromkeys((*first, *axes, *figures, *last))
    return frame_of(values, {name: "" if name in axes else dtypes.get(name, "") for name in names}, axes)


def frame_of(
    rows: Sequence[Mapping[str, Any]], dtypes: Mapping[str, str], axes: Sequence[str] = ()
) -> DataFrame:
    """Return rows as a frame with these columns; a dtype that is not given is that of the values."""
    frame = DataFrame({name: _series([row.get(name) for row in rows], dtypes[name]) for name in dtypes})
    frame.attrs["axes"] = list(axes)
    return frame


def axes_of(frame: DataFrame) -> list[str]:
    """Return the names of the axes that the rows of a frame vary."""
    return list(frame.attrs.get("axes", ()))


def plain_rows(frame: DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a frame as plain values, missing ones as None."""
    columns = {name: [plain(value) for value in frame[name]] for name in frame.columns}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain(value: Any) -> Any:
    """Return a value of a frame as Python has it: None if it is missing, a tuple as a list."""
    if value is None or value is pd.NA or value != value:  # NaN alone differs from itself
        return None
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return list(value)
    return value.item() if isinstance(value, np.generic) else value


def finished(frame: DataFrame) -> DataFrame:
    """Return the rows of finished runs."""
    return frame[frame["state"] == "finished"]


def select(frame: DataFrame, keep: Iterable[bool]) -> DataFrame:
    """Return the rows to keep; pandas would take an empty list for names of columns."""
    return frame[np.fromiter(keep, dtype=bool, count=len(frame))]


def write_csv(path: Path, frame: DataFrame) -> None:
    """Write a frame as CSV; missing values are empty."""
    write_atomic(path, _as_text(frame).to_csv(index=False, lineterminator="\n").encode())


def write_parquet(path: Path, frame: DataFrame) -> bool:
    """Write a frame as Parquet; without pyarrow remove an older file, which would be wrong now, and return False."""
    if find_spec("pyarrow") is None:
        path.unlink(missing_ok=True)
        return False
    data = io.BytesIO()
    _as_text(frame).to_parquet(data, index=False)
    write_atomic(path, data.getvalue())
    return True


def read_rows(path: Path) -> DataFrame:
    """Read a table of runs that was written as CSV or Parquet, with its dtypes and parts."""
    frame = pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path)
    for name, dtype in {**dtypes_of(RunSummary), **dict.fromkeys(FAILED, "Int64")}.items():
        if name not in frame.columns:
            continue
        if dtype == "object":
            frame[name] = [None if plain(text) is None else json.loads(text) for text in frame[name]]
            continue
        with suppress(ValueError, TypeError):  # an axis may have replaced a column of its name
            frame[name] = frame[name].astype(dtype)
    return frame


def _figures(summary: RunSummary | None) -> dict[str, Any]:
    if summary is None:
        return {"state": "unfinished"}
    values = {name: getattr(summary, name) for name in dtypes_of(RunSummary)}
    for name in _UNFLAT:
        del values[name]
    return {**values, **{name: summary.failures.get(kind, 0) for name, kind in FAILED.items()}}


def _series(values: list[Any], dtype: str) -> Series:
    dtype = dtype or _dtype_of(values)
    if dtype == "string":
        values = [None if value is None else str(value) for value in values]
    return Series(values, dtype=dtype)


def _dtype_of(values: Iterable[Any]) -> str:
    """Return the dtype of values of one kind; values of several kinds become text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "boolean"
    if kinds == {int}:
        return "Int64"
    if kinds and kinds <= {int, float}:
        return "float64"
    return "object" if kinds and kinds <= {dict, list, tuple} else "string"


def _as_text(frame: DataFrame) -> DataFrame:
    """Return a frame with JSON text in place of values with parts."""
    parts = [name for name in frame.columns if frame[name].dtype == object]
    return frame.assign(**{name: Series(map(_json, frame[name]), frame.index, "string") for name in parts})


def _json(value: Any) -> str | None:
    known = plain(value)
    return None if known is None else json.dumps(known, ensure_ascii=False)
