"""Folders within folders, deeper than a path can say."""

from __future__ import annotations

import os
from pathlib import Path


def nest(folder: Path, depth: int) -> None:
    """Make so many folders, each within the one before."""
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("deeper", dir_fd=descriptor)
        below = os.open("deeper", os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = below
    os.close(descriptor)
