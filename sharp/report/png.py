"""A small encoder of images: an array of shares as a PNG file in false colours."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def _ramp(*corners: tuple[int, int, int]) -> NDArray[np.uint8]:
    """Return 256 colours that run evenly through the given ones."""
    at, wanted = np.linspace(0, 255, len(corners)), np.arange(256)
    channels = [np.interp(wanted, at, channel) for channel in zip(*corners, strict=True)]
    return np.stack(channels, axis=1).round().astype(np.uint8)


# Dark to light with even steps of brightness; and blue over white to red for values of both signs.
VALUES = _ramp((30, 20, 70), (62, 63, 140), (38, 110, 142), (31, 158, 137), (110, 206, 88), (250, 231, 60))
DIFFERENCES = _ramp((20, 60, 150), (120, 165, 220), (247, 247, 247), (232, 148, 110), (160, 20, 40))


def png(shares: Array, colours: NDArray[np.uint8]) -> bytes:
    """Return an image of [rows, columns] shares between 0 and 1; what is not finite becomes grey.

    Truecolour, 8 bits a channel, no filter (PNG specification, W3C, sections 5, 9 and 11).
    """
    finite = np.isfinite(shares)
    indices = (np.clip(np.where(finite, shares, 0.0), 0, 1) * 255).round().astype(np.intp)
    pixels = np.where(finite[..., None], colours[indices], np.uint8(128)).astype(np.uint8)
    height, width = shares.shape
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (("IHDR", header), ("IDAT", zlib.compress(rows, 9)), ("IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name.encode(), data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
