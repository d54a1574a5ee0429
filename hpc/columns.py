"""Named arrays in one zarr file: what a checkpoint is made of, and nothing of what it means.

The zip is put together here from a store in memory, with its members sorted and their times fixed: equal
columns give equal bytes, and the file can be written like any other.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from zarr.core.buffer import Buffer

_EPOCH_OF_ZIP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True, eq=False)
class Column:
    """One array of the state: booleans, integers or floats of any shape, or texts.

    `description` is one line that says what it holds, `dimensions` (if given) names each of its axes.
    """

    values: NDArray[Any] | Sequence[str]
    description: str = ""
    dimensions: tuple[str, ...] = ()


def as_array(name: str, column: Column) -> NDArray[Any]:
    """Return a column as it is stored: little-endian numbers, or texts as objects that have a UTF-8 form.

    Raises ValueError (with the column's name) where zarr has no place for it.
    """
    values = column.values
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        array = np.ascontiguousarray(values, values.dtype.newbyteorder("<")).reshape(values.shape)
    else:
        array = np.array(values, dtype=object)
        if not all(isinstance(item, str) for item in array.flat):
            raise ValueError(
                f"Column {name!r} holds neither texts nor a numpy array of booleans, integers or floats."
            )
        array = _storable(array)
    if column.dimensions and len(column.dimensions) != array.ndim:
        raise ValueError(
            f"Column {name!r} names the dimensions {column.dimensions} and has the shape {array.shape}."
        )
    return array


def _storable(texts: NDArray[Any]) -> NDArray[Any]:
    # Lone surrogates, which models do emit, have no UTF-8: effects keep them, the state shows them escaped.
    flat = [text.encode("utf-8", "backslashreplace").decode("utf-8") for text in texts.flat]
    result = np.empty(len(flat), dtype=object)
    result[:] = flat
    return result.reshape(texts.shape)


def pack(attributes: Mapping[str, Any], columns: Mapping[str, Column]) -> bytes:
    """Return the zip of a zarr v3 group with these attributes and one array, of one chunk, a column."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, content in sorted(_zarr_members(attributes, columns).items()):
            info = zipfile.ZipInfo(name, _EPOCH_OF_ZIP)
            info.external_attr = 0o644 << 16
            archive.writestr(info, content)
    return target.getvalue()


def _zarr_members(attributes: Mapping[str, Any], columns: Mapping[str, Column]) -> dict[str, bytes]:
    from zarr.core.sync import sync

    members: dict[str, Buffer] = {}
    # zarr works in a thread of its own: one visit instead of several for each array.
    sync(_fill(members, attributes, columns))
    return {name: buffer.to_bytes() for name, buffer in members.items()}


async def _fill(
    members: dict[str, Buffer], attributes: Mapping[str, Any], columns: Mapping[str, Column]
) -> None:
    from zarr.api.asynchronous import create_group
    from zarr.storage import MemoryStore

    group = await create_group(store=MemoryStore(members), attributes=dict(attributes))
    for name, column in columns.items():
        array = as_array(name, column)
        kind = array.dtype.kind
        stored = await group.create_array(
            name,
            shape=array.shape,
            chunks=tuple(max(1, size) for size in array.shape),
            dtype="string" if kind == "O" else array.dtype,
            fill_value={"O": "", "f": np.nan, "b": False}.get(kind, 0),
            attributes={"description": column.description},
            dimension_names=column.dimensions or None,
            config={"write_empty_chunks": True},
        )
        await stored.setitem(Ellipsis, array)


def open_group(path: Path) -> Any:
    """Return the zarr group in a packed file, read into memory; raises anything where the file is damaged."""
    import zarr
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    # Reading the members here lets zipfile compare every checksum; ZipStore would leave a broken file open.
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    buffer = default_buffer_prototype().buffer
    members = {name: buffer.from_bytes(content) for name, content in contents.items()}
    return zarr.open_group(MemoryStore(members, read_only=True), mode="r")


def read_column(stored: Any) -> Column:
    """Return an array of such a group as a column; texts are an array of objects."""
    values = np.asarray(stored[...])
    if values.dtype.kind not in "biuf":
        values = values.astype(object)
    names = stored.metadata.dimension_names or ()
    return Column(values, str(stored.attrs["description"]), tuple(names))
