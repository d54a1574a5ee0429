"""Folders that candidates write to, and their removal whatever is in them.

Run as a script it removes a folder, for those who cannot wait until that is done: it takes the standard library alone.
"""

from __future__ import annotations

import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path

PREFIX = "candidate-"  # of every folder that a program works in, whatever its calls are for
_MOST = 2000  # entries that are removed at once: some hundredths of a second
_ALL, _LIMIT_S = 1 << 40, 3600


@contextmanager
def scratch_folder(prefix: str, within: Path | None = None) -> Iterator[Path]:
    """Give a new folder and remove it afterwards; raises `OSError` where none can be made."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    try:
        yield folder
    finally:
        clear_away(folder)


def clear_away(folder: Path) -> None:
    """Remove a folder whatever is in it; where that is much, a process of its own does it in its own time."""
    if not remove_tree(folder, _MOST):
        with suppress(OSError):  # it stays where it is, like what cannot be removed
            command, nothing = [sys.executable, "-I", "-S", __file__, str(folder)], subprocess.DEVNULL
            subprocess.run(command, check=False, stdin=nothing, stdout=nothing, stderr=nothing)


def remove_tree(folder: Path, most: int = _ALL) -> bool:
    """Remove a folder and, as far as the system lets us, all in it, at any depth and without any permission set.

    Folders within are moved to the top first, so that no path becomes too long and nothing recurses. Links are
    not followed; programs are no longer at work there. False once `most` entries were looked at and more are left.
    """
    mark, numbers = secrets.token_hex(8), count()
    waiting, left = [folder], most
    while waiting:
        current = waiting.pop()
        with suppress(OSError):
            current.chmod(0o700)
            with os.scandir(current) as found:
                entries = list(islice(found, left + 1))
            if len(entries) > left:
                return False
            left -= len(entries)
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
    return True


if __name__ == "__main__":
    if not os.fork():  # nobody waits for what it starts
        os.setsid()
        os.nice(19)
        signal.alarm(_LIMIT_S)
        remove_tree(Path(sys.argv[1]))
