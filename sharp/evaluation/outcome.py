"""Reading what a candidate's process has left, all of which is doubted.

Only regular files with one name are opened, nothing is unpickled, and headers are believed only where they say what
was agreed. Arrays are mapped, not read: no process that could change or truncate their file is left.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import BaseModel, StringConstraints, ValidationError

Array = NDArray[Any]
Word = Annotated[str, StringConstraints(max_length=40)]

_MAX_OUTCOME = 1 << 20
_UNREADABLE = (OSError, ValueError)


class HarnessFailure(BaseModel):
    """What the harness says went wrong; `storage` means that there was no room for a result."""

    kind: Literal[
        "syntax",
        "import",
        "signature",
        "shape",
        "non_finite",
        "exception",
        "memory",
        "sandbox_violation",
        "storage",
    ]
    message: str
    traceback: str


class ArrayInfo(BaseModel):
    """Type and shape of an array as it was returned."""

    dtype: Word
    shape: tuple[int, ...]


class Environment(BaseModel):
    """Versions and settings of the process."""

    python: Word
    numpy: Word
    device: Word
    jax: Word | None = None
    x64: bool | None = None
    platforms: Word | None = None
    torch: Word | None = None
    torch_finds_gpu: bool | None = None


class CallReport(BaseModel):
    """What the harness writes of one call, as far as it is believed."""

    failure: HarnessFailure | None
    returned: dict[str, ArrayInfo]
    environment: Environment


def read_outcome(scratch: Path, call: str) -> CallReport | None:
    """Return the outcome of a call; None where there is none of the agreed form."""
    try:
        with _opened(scratch / f"report-{call}.json") as file:
            return CallReport.model_validate_json(file.read(_MAX_OUTCOME))
    except (*_UNREADABLE, ValidationError):
        return None


def read_arrays(scratch: Path, call: str, returns: Mapping[str, tuple[int, ...]]) -> dict[str, Array] | None:
    """Return all arrays of a call; None unless each holds real numbers in single or double precision in its shape."""
    try:
        return {name: _read(scratch / f"output-{call}-{name}.npy", shape) for name, shape in returns.items()}
    except _UNREADABLE:
        return None


def _read(path: Path, shape: tuple[int, ...]) -> Array:
    with _opened(path) as file:
        if npy.read_magic(file) != (1, 0):
            raise ValueError(f"{path} is of another version")
        found, by_columns, dtype = npy.read_array_header_1_0(file)
        if found != shape or by_columns or dtype not in (np.float32, np.float64) or not dtype.isnative:
            raise ValueError(f"{path} is of another form")
        # To copy a large array would take nearly as long as to compare it with the reference.
        return np.asarray(np.memmap(file, dtype, "r", file.tell(), shape))


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file that has no other name, without waiting for a pipe and without following a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            raise ValueError(f"{path} is not a file of its own")
        yield file
