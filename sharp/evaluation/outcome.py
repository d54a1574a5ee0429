"""Taking away and reading what a candidate's process leaves of a call, all of which is doubted.

Only regular files with one name and of an agreed size are copied, to where no candidate gets. A file of values has
no header: what they are follows from its size. Reports are JSON of a moderate size, and their texts are cleaned. Copies
of arrays are mapped, not read: no process that could change or truncate them has ever seen them.
"""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field, StringConstraints, ValidationError

from hpc.errors import InfrastructureError
from hpc.sandbox import printable
from sharp.evaluation.calls import SolverCall, output_file, report_file

Array = NDArray[Any]
Word = Annotated[str, StringConstraints(max_length=40), AfterValidator(printable)]
Text = Annotated[str, StringConstraints(max_length=1 << 14), AfterValidator(printable)]
Size = Annotated[int, Field(ge=0, lt=1 << 63)]

_MAX_REPORT = 1 << 16
_CHUNK = 1 << 20
_PRECISIONS = {4: np.float32, 8: np.float64}


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
    message: Text
    traceback: Text


class ArrayInfo(BaseModel):
    """Type and shape of an array as it was returned."""

    dtype: Word
    shape: Annotated[tuple[Size, ...], Field(max_length=32)]


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


def keep_files(call: SolverCall, scratch: Path, kept: Path) -> None:
    """Copy what a call has left of the agreed form to another folder; what is of another form is left out.

    Raises `InfrastructureError` where there is no room for copies.
    """
    for name, shape in call.returns.items():
        count = math.prod(shape)
        _copy(scratch, kept, output_file(call, name), [size * count for size in _PRECISIONS])
    _copy(scratch, kept, report_file(call), range(_MAX_REPORT))


def read_report(kept: Path, call: SolverCall) -> CallReport | None:
    """Return what was said of a call; None where nothing of the agreed form was."""
    try:
        return CallReport.model_validate_json((kept / report_file(call)).read_bytes())
    except (FileNotFoundError, ValidationError):
        return None


def read_arrays(kept: Path, call: SolverCall) -> dict[str, Array] | None:
    """Return all arrays of a call, in single or double precision in their shapes; None where one is missing."""
    try:
        return {name: _read(kept / output_file(call, name), shape) for name, shape in call.returns.items()}
    except FileNotFoundError:
        return None


def _read(path: Path, shape: tuple[int, ...]) -> Array:
    precision = _PRECISIONS[path.stat().st_size // math.prod(shape)]
    # To copy a large array would take nearly as long as to compare it with the reference.
    return np.asarray(np.memmap(path, precision, "r", 0, shape))


def _copy(scratch: Path, kept: Path, name: str, sizes: Container[int]) -> None:
    with suppress(OSError, ValueError), _opened(scratch / name) as file:
        size = os.fstat(file.fileno()).st_size
        if size not in sizes:
            return
        try:
            with (kept / name).open("xb") as copy:
                _copy_bytes(file, copy, size)
        except OSError as error:
            raise InfrastructureError(f"{kept} could not be filled: {error.strerror}.") from error
        if (kept / name).stat().st_size != size:  # it was changed meanwhile
            (kept / name).unlink()


def _copy_bytes(file: IO[bytes], copy: IO[bytes], size: int) -> None:
    while size > 0 and (chunk := file.read(min(size, _CHUNK))):
        copy.write(chunk)
        size -= len(chunk)


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file that has no other name, without waiting for a pipe and without following a link."""
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode) or state.st_nlink != 1:
            raise ValueError(f"{path} is not a file of its own")
        yield file
