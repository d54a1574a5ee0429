"""Folders that candidates write to, and their removal whatever is in them."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path


@contextmanager
def scratch_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Give a new folder and remove it afterwards; raises `OSError` where none can be made."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    try:
        yield folder
    finally:
        remove_tree(folder)


def remove_tree(folder: Path) -> None:
    """Remove a folder and, as far as the system lets us, all in it, at any depth and without any permission set.

    Folders within are moved to the top first, so that no path becomes too long and nothing recurses. Links are
    not followed; nobody else may be at work there.
    """
    mark, numbers = secrets.token_hex(8), count()
    waiting = [folder]
    while waiting:
        current = waiting.pop()
        with suppress(OSError):
            for entry in _entries(current):
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(_moved(entry, folder / f"{mark}-{next(numbers)}"))
                else:
                    Path(entry.path).unlink()
        if current != folder:
            with suppress(OSError):
                current.rmdir()
    with suppress(OSError):
        folder.rmdir()


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    folder.chmod(0o700)
    with os.scandir(folder) as entries:
        return list(entries)


def _moved(entry: os.DirEntry[str], place: Path) -> Path:
    Path(entry.path).chmod(0o700)  # else it could not be given another parent
    return Path(entry.path).rename(place)
