"""HDF5 mechanics: clear errors, finding data sets, reading rows, hashing contents, whole files or none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from sharp.errors import DataError

_BLOCK_BYTES = 16 << 20
# Smaller files are hashed anew each time, within a tenth of a second.
_REMEMBERED_FROM_BYTES = 50_000_000


def data_home() -> Path:
    """Return where generated data are kept: $SHARP_DATA, else `pde-sharp` in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SHARP_DATA") or Path(cache) / "pde-sharp")


@contextmanager
def opened(path: Path) -> Iterator[h5py.File]:
    """Open a file for reading, without a lock: no file is changed in place, and some filesystems refuse.

    Raises `DataError` when the file is missing, is not HDF5, or breaks off while it is read.
    """
    try:
        with h5py.File(path, "r", locking=False) as file:
            yield file
    except FileNotFoundError as error:
        raise DataError(f"{path}: expected a data file, found nothing of that name") from error
    except OSError as error:
        raise DataError(
            f"{path}: expected a complete HDF5 file, found one that cannot be read ({error})"
        ) from error


def list_arrays(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Return all data sets by their full name, groups included."""
    found: dict[str, h5py.Dataset] = {}
    file.visititems(lambda name, item: found.update({name: item}) if isinstance(item, h5py.Dataset) else None)
    return found


def find_array(file: h5py.File, key: str) -> h5py.Dataset | None:
    """Return the data set called `key` at the top, or else the only one of that name inside groups."""
    arrays = list_arrays(file)
    inside = [array for name, array in arrays.items() if name.rsplit("/", 1)[-1] == key]
    return arrays.get(key) or (inside[0] if len(inside) == 1 else None)


def get_array(file: h5py.File, key: str) -> h5py.Dataset:
    """Return the data set called `key`; raises `DataError` naming all that are there."""
    array = find_array(file, key)
    if array is None:
        found = ", ".join(f"{name} {list(item.shape)}" for name, item in list_arrays(file).items())
        raise DataError(f"{file.filename}: expected a data set `{key}`, found {found or 'no data sets'}")
    return array


def read_rows(array: h5py.Dataset, rows: Sequence[int], *rest: Any) -> NDArray[Any]:
    """Read `array[rows, *rest]` with rows in any order; only what is asked leaves the disk.

    Raises `DataError` for rows that are not there or values that are not finite.
    """
    wanted = np.asarray(rows, dtype=np.intp)
    outside = wanted[(wanted < 0) | (wanted >= array.shape[0])]
    place = f"{array.file.filename}: `{array.name.lstrip('/')}`"
    if outside.size:
        raise DataError(f"{place} has samples 0 to {array.shape[0] - 1}; sample {outside[0]} was asked for")
    unique, inverse = np.unique(wanted, return_inverse=True)
    together = unique.size and unique[-1] - unique[0] + 1 == unique.size
    # HDF5 reads a slice in one piece, and a list row by row.
    chosen = slice(int(unique[0]), int(unique[-1]) + 1) if together else unique
    values = np.asarray(array[(chosen, *rest)])
    if not np.array_equal(unique, wanted):
        values = values[inverse]
    for sample, row in zip(wanted, values, strict=True):
        if not np.isfinite(row).all():
            raise DataError(f"{place} has values that are not finite in sample {sample}")
    return values


def content_hash(path: Path) -> str:
    """Return the SHA-256 hex digest of the names, types, shapes and values of all data sets of a file.

    Attributes (wall time, version) do not count. The digest of a large file is remembered in
    `data_home()/hashes` for its size and time of change.
    """
    state = path.stat() if path.is_file() else None
    return _hash_in_state(path.resolve(), *((state.st_size, state.st_mtime_ns) if state else (0, 0)))


@lru_cache(maxsize=64)
def _hash_in_state(path: Path, size: int, mtime_ns: int) -> str:
    note = data_home() / "hashes" / f"{hashlib.sha256(str(path).encode()).hexdigest()[:32]}.json"
    if size < _REMEMBERED_FROM_BYTES:
        return _hash_values(path)
    if (known := _read_note(note)).get("state") == [size, mtime_ns]:
        return str(known["sha256"])
    digest = _hash_values(path)
    with replacing(note) as part:
        part.write_text(json.dumps({"file": str(path), "state": [size, mtime_ns], "sha256": digest}))
    return digest


def _read_note(note: Path) -> dict[str, Any]:
    try:
        return dict(json.loads(note.read_text()))
    except (OSError, ValueError):
        return {}


def _hash_values(path: Path) -> str:
    digest = hashlib.sha256()
    with opened(path) as file:
        for name, array in sorted(list_arrays(file).items()):
            digest.update(f"{name}\0{array.dtype.str}\0{array.shape}\0".encode())
            for block in _blocks(array):
                digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()


def _blocks(array: h5py.Dataset) -> Iterator[NDArray[Any]]:
    """Yield the numbers of a data set in blocks of rows that fit in memory; texts have no numbers."""
    if array.dtype.kind not in "biuf" or array.size == 0:
        return
    if array.ndim == 0:
        yield np.asarray(array[()])
        return
    rows = max(1, _BLOCK_BYTES * array.shape[0] // (array.size * array.dtype.itemsize))
    for start in range(0, array.shape[0], rows):
        yield array[start : start + rows]


def write_arrays(
    path: Path, arrays: Mapping[str, NDArray[Any]], attrs: Mapping[str, str | int | float]
) -> None:
    """Write a new file, chunked by sample; it appears under its name only when complete and on disk."""
    with replacing(path) as part:
        with h5py.File(part, "w") as file:
            file.attrs.update(attrs)
            for name, values in arrays.items():
                file.create_dataset(
                    name, data=values, chunks=(1, *values.shape[1:]) if values.ndim > 1 else None
                )
        with part.open("rb") as written:
            os.fsync(written.fileno())


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name beside `path` that is renamed to it on success and removed on any failure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
