"""The winner's solution of one sample beside the reference and the true solution."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from io import BytesIO
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.protocol import EvaluationRequest
from sharp.evaluation.taskfolder import read_picture, task_folder
from sharp.report.blocks import Block, Figure, Paragraph, Section, Table
from sharp.report.drawings import Curves, HeatMaps, Panel
from sharp.report.evidence import Evidence
from sharp.report.text import error_text

Array = NDArray[Any]
Fields = Mapping[str, Array]

# What the file calls the arrays, and what the report calls them.
KINDS = {"prediction": "solver", "reference": "data set", "truth": "true solution"}


def pictures(evidence: Evidence) -> Section:
    """Return the winner's solution at several times, or as maps."""
    title = "The winner's solution"
    for path, words in _places(evidence):
        arrays = _load(evidence, path)
        if arrays is not None:
            intro = Paragraph(f"The first sample of the {words} data, thinned out for this page.")
            return Section("pictures", title, (intro, *_blocks(evidence, arrays)))
    reason = "There is no winner." if evidence.state.best is None else "The pictures of its runs are gone."
    return Section("pictures", title, (Paragraph(reason),))


def _places(evidence: Evidence) -> Iterator[tuple[str, str]]:
    yield "finalize/test", "test"
    execution = evidence.runs.get(evidence.state.best) if evidence.state.best else None
    if execution is not None:
        yield execution.path, execution.split


def _load(evidence: Evidence, path: str) -> dict[str, Array] | None:
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


def _blocks(evidence: Evidence, arrays: Fields) -> Iterator[Block]:
    rows: list[tuple[str, ...]] = []
    for port in evidence.run.problem.interface.returns:
        kinds = {kind: arrays[f"{kind}.{port.name}"] for kind in KINDS if f"{kind}.{port.name}" in arrays}
        if "prediction" not in kinds or "reference" not in kinds:
            continue
        drawing = _drawing(port.name, kinds, arrays)
        if drawing is not None:
            yield Figure(
                drawing, _caption(port.name, kinds), "The table below says how far the curves are apart."
            )
        rows += _distances(port.name, kinds, arrays.get("t"))
    columns = (
        "field",
        "time",
        "solver from data set",
        "solver from true solution",
        "data set from true solution",
    )
    yield Table(columns, tuple(rows), columns[1:], "Relative distances in the 2-norm, of the sample shown")


def _drawing(field: str, kinds: Fields, arrays: Fields) -> Curves | HeatMaps | None:
    t, x = arrays.get("t"), arrays.get("x")
    named = {KINDS[kind]: values for kind, values in kinds.items()}
    dimensions = kinds["prediction"].ndim - (t is not None)
    if dimensions == 2:
        last = named if t is None else {name: values[-1] for name, values in named.items()}
        title = field if t is None else f"{field} at t = {t[-1]:.3g}"
        return HeatMaps(title, last, _differences(last))
    if x is None or t is None or dimensions != 1:
        return None
    return Curves(field, tuple(_panel(f"t = {time:.3g}", x, named, index) for index, time in enumerate(t)))


def _panel(title: str, x: Array, named: Fields, index: int) -> Panel:
    curves = {name: values[index] for name, values in named.items()}
    return Panel(title, x, curves, _differences(curves))


def _differences(named: Fields) -> dict[str, Array]:
    solver = named["solver"]
    return {f"solver − {name}": solver - values for name, values in named.items() if name != "solver"}


def _caption(field: str, kinds: Fields) -> str:
    others = " and ".join(KINDS[kind] for kind in kinds if kind != "prediction")
    return f"{field}: the solver's result beside {others}, and the differences."


def _distances(field: str, kinds: Fields, t: Array | None) -> Iterator[tuple[str, ...]]:
    times: list[tuple[str, Any]] = [("", slice(None))]
    if t is not None:
        times = [(f"{time:.3g}", index) for index, time in enumerate(t)]
    for name, index in times:
        at = {kind: values[index] for kind, values in kinds.items()}
        pairs = (("prediction", "reference"), ("prediction", "truth"), ("reference", "truth"))
        yield field, name, *(error_text(_distance(at.get(first), at.get(second))) for first, second in pairs)


def _distance(first: Array | None, second: Array | None) -> float | None:
    if first is None or second is None:
        return None
    size = float(np.linalg.norm(second.astype(np.float64)))
    return float(np.linalg.norm(first.astype(np.float64) - second)) / size if size else None
