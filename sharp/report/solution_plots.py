"""The winner's solution of one sample beside the reference and the true solution."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.document import (
    Block,
    Curve,
    CurvePanel,
    CurveStyle,
    Figure,
    MapPanel,
    Panel,
    Panels,
    Paragraph,
    Section,
    Table,
)
from sharp.document.text import error_text
from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.task_folder import read_picture, task_folder
from sharp.report.report_data import ReportData

Array = NDArray[Any]
Fields = Mapping[str, Array]

# What the file calls the arrays, and what the report calls them.
KINDS = {"prediction": "solver", "data": "data set", "reference": "true solution"}


_STYLES: dict[str, CurveStyle] = {"data set": "broad", "true solution": "dashed"}


def pictures(evidence: ReportData) -> Section:
    """Return the winner's solution at several times, or as maps."""
    title = "The winner's solution"
    for path, words in _places(evidence):
        arrays = _load(evidence, path)
        if arrays is not None:
            intro = Paragraph(f"The first sample of the {words} data, thinned out for this page.")
            return Section("pictures", title, (intro, *_blocks(evidence, arrays)))
    reason = "There is no winner." if evidence.state.best is None else "The pictures of its runs are gone."
    return Section("pictures", title, (Paragraph(reason),))


def _places(evidence: ReportData) -> Iterator[tuple[str, str]]:
    yield "finalize/test", "test"
    execution = evidence.runs.get(evidence.state.best) if evidence.state.best else None
    if execution is not None:
        yield execution.path, execution.split


def _load(evidence: ReportData, path: str) -> dict[str, Array] | None:
    """Return the arrays of an evaluation's picture; None where there is none that can be read."""
    effect = evidence.effect(path)
    if effect is None:
        return None
    request = EvaluationRequest.from_json(effect.request)
    try:
        data = read_picture(task_folder(evidence.run.path, request))
        with np.load(BytesIO(data), allow_pickle=False) as stored:
            return {name: stored[name] for name in stored.files}
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _blocks(evidence: ReportData, arrays: Fields) -> Iterator[Block]:
    rows: list[tuple[str, ...]] = []
    for port in evidence.run.problem.interface.returns:
        kinds = {kind: arrays[f"{kind}.{port.name}"] for kind in KINDS if f"{kind}.{port.name}" in arrays}
        if "prediction" not in kinds or "data" not in kinds:
            continue
        yield from _figures(port.name, kinds, arrays)
        rows += _distances(port.name, kinds, arrays.get("t"))
    columns = (
        "field",
        "time",
        "solver from data set",
        "solver from true solution",
        "data set from true solution",
    )
    yield Table(columns, tuple(rows), columns[1:], "Relative distances in the 2-norm, of the sample shown")


def _figures(field: str, kinds: Fields, arrays: Fields) -> Iterator[Figure]:
    """Yield a figure of the field, and one of the differences of the solver from the others."""
    t, x = arrays.get("t"), arrays.get("x")
    named = {KINDS[kind]: values for kind, values in kinds.items()}
    others = " and ".join(name for name in named if name != "solver")
    dimensions = kinds["prediction"].ndim - (t is not None)
    told = (
        ("values", f"{field}: the solver's result beside {others}.", named),
        ("differences", f"{field}: differences of the solver from {others}.", _differences(named)),
    )
    for what, caption, values in told:
        panels: tuple[Panel, ...] = ()
        if dimensions == 2:
            panels = tuple(_maps(field, values, t, signed=what == "differences"))
        elif dimensions == 1 and x is not None and t is not None:
            panels = tuple(_lines(values, x, t))
        if panels:
            title = f"{field}: {what}"
            across = "x" if dimensions == 1 else ""
            chart = Panels(f"picture-{field}-{what}", title, field, panels, across)
            yield Figure(chart, caption, "The table below says how far the curves are apart.")


def _maps(field: str, named: Fields, t: Array | None, *, signed: bool) -> Iterator[MapPanel]:
    for name, values in named.items():
        title = name if t is None else f"{name}, {field} at t = {t[-1]:.3g}"
        yield MapPanel(title, values if t is None else values[-1], signed=signed)


def _lines(named: Fields, x: Array, t: Array) -> Iterator[CurvePanel]:
    # The solver comes last, so that it is seen above what it should agree with.
    names = sorted(named, key=lambda name: name == "solver")
    for index, time in enumerate(t):
        curves = tuple(Curve.of(name, x, named[name][index], _STYLES.get(name, "solid")) for name in names)
        yield CurvePanel(f"t = {time:.3g}", curves, logarithmic=False)


def _differences(named: Fields) -> dict[str, Array]:
    solver = named["solver"]
    return {f"solver − {name}": solver - values for name, values in named.items() if name != "solver"}


def _distances(field: str, kinds: Fields, t: Array | None) -> Iterator[tuple[str, ...]]:
    times: list[tuple[str, Any]] = [("", slice(None))]
    if t is not None:
        times = [(f"{time:.3g}", index) for index, time in enumerate(t)]
    for name, index in times:
        at = {kind: values[index] for kind, values in kinds.items()}
        pairs = (("prediction", "data"), ("prediction", "reference"), ("data", "reference"))
        yield field, name, *(error_text(_distance(at.get(first), at.get(second))) for first, second in pairs)


def _distance(first: Array | None, second: Array | None) -> float | None:
    if first is None or second is None:
        return None
    size = float(np.linalg.norm(second.astype(np.float64)))
    return float(np.linalg.norm(first.astype(np.float64) - second)) / size if size else None
