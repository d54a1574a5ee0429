"""Whether a solver keeps the promises of its interface: other grids, other output times, other numbers of samples."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import accumulate, count, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sharp.evaluation.candidate import CallResult
from sharp.evaluation.protocol import InterfaceCheck
from sharp.evaluation.scoring import finiteness_failure
from sharp.problems import Problem
from sharp.reference import Inputs, restricted

Array = NDArray[Any]

_FEWEST_TIMES = 4
_CLOSE = 0.1
_SIMILAR = 0.5


def uneven_times(t: Array) -> NDArray[np.intp] | None:
    """Return the indices 0, 1, 3, 6, 10, ... of output times, whose intervals grow; None where there are too few."""
    if len(t) < _FEWEST_TIMES:
        return None
    return np.array(list(takewhile(lambda index: index < len(t), accumulate(count()))), dtype=np.intp)


def with_uneven_times(inputs: Inputs) -> Inputs | None:
    """Return the same samples with output times at growing intervals, the first one kept; None for too few times."""
    if inputs.t is None or (indices := uneven_times(inputs.t)) is None:
        return None
    return replace(inputs, t=inputs.t[indices])


def check_times(inputs: Inputs, scored: Mapping[str, Array], result: CallResult) -> InterfaceCheck:
    """Compare values at uneven output times with those of the scored call at the same times."""
    assert inputs.t is not None
    indices = uneven_times(inputs.t)
    expected = {name: values[:, indices] for name, values in scored.items()}
    message = fault_of(result, inputs.t[indices]) or _apart(
        result.arrays, expected, _CLOSE, "from the values at the same times among even ones"
    )
    return InterfaceCheck("non-uniform times", not message, message)


def check_grid(
    problem: Problem, inputs: Inputs, scored: Mapping[str, Array], result: CallResult
) -> InterfaceCheck:
    """Compare a solution on the grid with twice the spacing roughly with the scored one."""
    expected = {name: restricted(problem, values) for name, values in scored.items()}
    message = fault_of(result, inputs.t) or _apart(
        result.arrays, expected, _SIMILAR, "from the solution on the grid with half the spacing"
    )
    return InterfaceCheck("second grid", not message, message)


def check_fewer(inputs: Inputs, scored: Mapping[str, Array], result: CallResult) -> InterfaceCheck:
    """Compare the solution of a part, the first samples at the first times, with the scored one."""
    message = fault_of(result, inputs.t)
    if not message:
        shapes = {name: tuple(map(slice, values.shape)) for name, values in result.arrays.items()}
        expected = {name: values[shapes[name]] for name, values in scored.items()}
        message = _apart(result.arrays, expected, _CLOSE, "from the values among more samples and times")
    return InterfaceCheck("fewer samples", not message, message)


def fault_of(result: CallResult, t: Array | None) -> str:
    """Return why a call has no finite result, empty where it has one."""
    failure = result.failure or finiteness_failure(result.arrays, t)
    return "" if failure is None else failure.message


def _apart(found: Mapping[str, Array], expected: Mapping[str, Array], most: float, whence: str) -> str:
    distance = relative_distance(found, expected)
    return "" if distance <= most else f"Its values are {distance:.0%} away {whence}."


def relative_distance(found: Mapping[str, Array], expected: Mapping[str, Array]) -> float:
    """Return ||found - expected||_2 / ||expected||_2 over all fields together; 0 where both are zero."""
    with np.errstate(over="ignore"):
        difference = sum(_square(found[name] - values) for name, values in expected.items())
        size = sum(map(_square, expected.values()))
    if difference == 0:
        return 0.0
    return math.sqrt(difference / size) if size else math.inf


def _square(values: Array) -> float:
    flat = np.ravel(values).astype(np.float64, copy=False)
    return float(flat @ flat)
