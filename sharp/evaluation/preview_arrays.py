"""A few curves or planes of one sample, small enough to be kept beside every result and drawn in a report."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MAX_POINTS = 256
_MAX_VALUES = 64 * 64
_MAX_TIMES = 5


def preview_arrays(
    kinds: Mapping[str, Mapping[str, Array] | None], t: Array | None, x: Array | None, sample: int = 0
) -> bytes:
    """Return a compressed NPZ of one sample, thinned out, in single precision.

    `kinds` names what is compared (`prediction`, `data`, `reference`) and gives the fields of each,
    samples first; None leaves one out. The arrays are called `<kind>.<field>`, with shape [times, points]
    or [points, points], in more dimensions with as many axes of points; `t` and `x` hold the times and the points along
    the first axis that were kept.
    """
    arrays = {
        f"{kind}.{name}": _thin(values[sample], t is not None)
        for kind, fields in kinds.items()
        for name, values in (fields or {}).items()
    }
    if t is not None:
        arrays["t"] = t[_evenly(len(t), _MAX_TIMES)]
    if x is not None and x.ndim == 1:
        shape = next(values.shape for values in arrays.values())
        arrays["x"] = x[_evenly(len(x), _most(shape, t is not None))]
    single: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **single)
    return buffer.getvalue()


def _thin(values: Array, in_time: bool) -> Array:
    points = _most(values.shape, in_time)
    for axis, length in enumerate(values.shape):
        count = _MAX_TIMES if in_time and axis == 0 else points
        values = np.take(values, _evenly(length, count), axis=axis)
    return values


def _most(shape: tuple[int, ...], in_time: bool) -> int:
    """Return how many points along an axis are kept, so that an array of any dimension stays small."""
    times, dimensions = (min(shape[0], _MAX_TIMES), len(shape) - 1) if in_time else (1, len(shape))
    return min(_MAX_POINTS, round(math.pow(_MAX_VALUES / times, 1 / dimensions)))


def _evenly(length: int, most: int) -> NDArray[np.intp]:
    """Return at most so many indices, evenly spread, both ends included."""
    return np.linspace(0, length - 1, min(length, most)).round().astype(np.intp)
