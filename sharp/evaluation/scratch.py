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
            current.chmod(0o700)
            with os.scandir(current) as found:
                entries = list(found)
            for entry in entries:
                path = Path(entry.path)
                if entry.is_dir(follow_symlinks=False):
                    path.chmod(0o700)  # else it could not be given another parent
                    waiting.append(path.rename(folder / f"{mark}-{next(numbers)}"))
                else:
                    path.unlink()
        if current != folder:
            with suppress(OSError):
                current.rmdir()
    with suppress(OSError):
        folder.rmdir()
