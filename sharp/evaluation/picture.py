"""A few curves or planes of one sample, small enough to be kept beside every result and drawn in a report."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

_MAX_POINTS = 256
_MAX_POINTS_OF_PLANE = 64
_MAX_TIMES = 5


def picture(
    kinds: Mapping[str, Mapping[str, Array] | None], t: Array | None, x: Array | None, sample: int = 0
) -> bytes:
    """Return a compressed NPZ of one sample, thinned out, in single precision.

    `kinds` names what is compared (`prediction`, `reference`, `truth`) and gives the fields of each,
    samples first; None leaves one out. The arrays are called `<kind>.<field>`, with shape [times, points]
    or [points, points]; `t` and `x` hold the times and points that were kept.
    """
    arrays = {
        f"{kind}.{name}": _thin(values[sample], t is not None)
        for kind, fields in kinds.items()
        for name, values in (fields or {}).items()
    }
    if t is not None:
        arrays["t"] = t[_evenly(len(t), _MAX_TIMES)]
    if x is not None and x.ndim == 1:
        arrays["x"] = x[_evenly(len(x), _MAX_POINTS if t is not None else _MAX_POINTS_OF_PLANE)]
    single: dict[str, Any] = {name: array.astype(np.float32) for name, array in arrays.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **single)
    return buffer.getvalue()


def _thin(values: Array, in_time: bool) -> Array:
    most = (_MAX_TIMES, _MAX_POINTS) if in_time else (_MAX_POINTS_OF_PLANE,) * values.ndim
    for axis, count in enumerate(most):
        values = np.take(values, _evenly(values.shape[axis], count), axis=axis)
    return values


def _evenly(length: int, most: int) -> NDArray[np.intp]:
    """Return at most so many indices, evenly spread, both ends included."""
    return np.linspace(0, length - 1, min(length, most)).round().astype(np.intp)
