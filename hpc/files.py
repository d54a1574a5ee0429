"""Writing that outlives a killed process, a lost node and a full disk.

A file that exists under its name is complete: it is written under a temporary name, flushed to the device,
renamed, and the directory is flushed too. An append is there in full or not at all. All errors name the file.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hpc.errors import PASSING, RunDirectoryError, StorageFull, StorageUnavailable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Record = TypeVar("Record")

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@contextmanager
def translate_os_errors(path: Path) -> Iterator[None]:
    """Turn an `OSError` into `StorageFull` (space, quota, size limit), `StorageUnavailable` or `RunDirectoryError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _FULL:
            raise StorageFull(
                f"{path} could not be written: {reason}. Everything recorded before stands; "
                "free some space or raise the quota, then resume the run."
            ) from error
        kind = StorageUnavailable if error.errno in PASSING else RunDirectoryError
        raise kind(f"{path} could not be written: {reason}.") from error


def temp_path(path: Path) -> Path:
    """Return a fresh name beside `path`, of the form that `remove_leftovers` knows."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def remove_leftovers(directory: Path) -> None:
    """Remove the temporary files that killed writers left."""
    for leftover in directory.glob(".*.tmp"):
        leftover.unlink(missing_ok=True)


def write_all(fd: int, data: bytes) -> None:
    """Write every byte: in one call, unless the system takes less than it was given."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_directory(directory: Path) -> None:
    """Flush a directory's entries; a file system without such a thing (EINVAL) has its own way."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(fd)


def write_atomic(path: Path, data: bytes, *, flush: bool = True) -> None:
    """Create or replace a file so that it holds all of `data` or what it held before.

    Without `flush` it may be gone, or empty, after a loss of power: for what can be made again.
    """
    draft = temp_path(path)
    try:
        with translate_os_errors(path):
            _create(draft, data, flush=flush)
            draft.replace(path)
            if flush:
                sync_directory(path.parent)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def write_record(path: Path, record: DataclassInstance) -> None:
    """Create or replace a JSON file with the fields of a dataclass."""
    write_atomic(path, json.dumps(asdict(record), ensure_ascii=False).encode())


def read_record(path: Path, kind: type[Record]) -> Record | None:
    """Return the dataclass of plain values that a JSON file holds; None where it is not there or cannot be read."""
    try:
        return kind(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def cut(path: Path, size: int) -> None:
    """Cut a file off after `size` bytes."""
    with translate_os_errors(path), path.open("r+b") as file:
        os.ftruncate(file.fileno(), size)
        os.fsync(file.fileno())


def truncate_partial_line(path: Path) -> None:
    """Cut off what a killed writer left of its last line, so that the next line stands for itself."""
    with suppress(FileNotFoundError):
        data = path.read_bytes()
        whole = data.rfind(b"\n") + 1
        if whole < len(data):
            cut(path, whole)


def last_lines(path: Path, count: int) -> list[str]:
    """Return the last lines of a text file, none where it cannot be read."""
    try:
        with path.open(errors="replace") as file:
            return [line.rstrip("\n") for line in deque(file, count)]
    except OSError:
        return []


def make_directory(path: Path) -> None:
    """Create a directory for good, unless it is there."""
    if not path.is_dir():
        with translate_os_errors(path):
            path.mkdir(parents=True, exist_ok=True)
            sync_directory(path.parent)


def _create(path: Path, data: bytes, *, flush: bool) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        write_all(fd, data)
        if flush:
            os.fsync(fd)
    finally:
        os.close(fd)


class AppendFile:
    """A file that only grows, by whole lines; a line that could not be written in full is taken back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with translate_os_errors(path):
            self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o666)
            sync_directory(path.parent)

    def append(self, line: bytes) -> None:
        """Write one line in one call and flush it; raises `StorageFull` or `RunDirectoryError`."""
        start = os.fstat(self._fd).st_size
        try:
            with translate_os_errors(self.path):
                write_all(self._fd, line)
                os.fsync(self._fd)
        except BaseException:
            # Another size than this line explains means that a successor writes here now: then nothing may be
            # cut. What cannot be cut stays a torn tail, which the next opening drops.
            with suppress(OSError):
                if start < os.fstat(self._fd).st_size <= start + len(line):
                    os.ftruncate(self._fd, start)
            raise

    def close(self) -> None:
        """Release the file."""
        os.close(self._fd)
