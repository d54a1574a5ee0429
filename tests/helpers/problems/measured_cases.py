"""Cases for measures: shipped problems with other parameters, and any arrays as a prediction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from sharp.problems import Problem, load_problem
from sharp.reference.datasets import Inputs
from sharp.reference.feedback import compute
from sharp.reference.metrics import MetricInput, MetricValue

Array = np.ndarray


def shipped(name: str, **parameters: float) -> Problem:
    problem = load_problem(name)
    return replace(problem, parameters={**problem.parameters, **parameters})


def cells(points: int) -> Array:
    """Return the cell centres of (0, 1)."""
    return (np.arange(points) + 0.5) / points


def inputs(problem: Problem, start: Mapping[str, Array], t: Array | None) -> Inputs:
    """Return inputs with the given fields [n, ...] at the start."""
    arrays = {port.name: start[port.field] for port in problem.interface.inputs}
    return Inputs(arrays, t, cells(next(iter(start.values())).shape[-1]))


def case(
    problem: Problem,
    fields: Mapping[str, Array],
    t: Array,
    start: Mapping[str, Array] | None = None,
    **more: Any,
) -> MetricInput:
    """Return the case of a prediction [n, T, N] by field, by default started from its own first frame."""
    start = start or {field: values[:, 0] for field, values in fields.items()}
    returned = {port.name: fields[port.field] for port in problem.interface.returns}
    return MetricInput(problem, inputs(problem, start, t), returned, **more)


def found(name: str, measured: MetricInput) -> MetricValue:
    return compute([name], measured)[name]


def number(name: str, measured: MetricInput) -> float:
    value = found(name, measured).value
    assert value >= 0
    return value
