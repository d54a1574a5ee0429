"""Watching how much a program keeps on disk, deleted files that it still holds open included."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from hpc.processes import threads_of

_INTERVAL_S = 0.25
_SHARE = 0.1  # of the time, at most, is spent on looking
_LEAST = 4096  # bytes that a file counts for, so that many small ones count too
_BLOCK = 512
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DiskUsageMonitor:
    """The use of a folder, in bytes and entries, looked at every now and then."""

    def __init__(self, folder: Path, limit: int, entries: int = sys.maxsize) -> None:
        self._folder, self._limit, self._entries = folder, limit, entries
        self._next = time.monotonic() + _INTERVAL_S

    def limit_exceeded(self, holders: Callable[[], Iterable[int]]) -> bool:
        """Tell whether the folder, with deleted files that processes hold, is beyond the limit in bytes.

        False where it is too early to look again.
        """
        begun = time.monotonic()
        if begun < self._next:
            return False
        full = self.exceeds_now(holders())
        took = time.monotonic() - begun
        self._next = begun + max(_INTERVAL_S, took / _SHARE)
        return full

    def exceeds_now(self, holders: Iterable[int]) -> bool:
        """Look now, whatever the time. A folder that cannot be looked into counts as beyond any limit."""
        used = sum(held_bytes(pid) for pid in holders)
        try:
            return _exceeds(self._folder, self._limit - used, self._entries)
        except FileNotFoundError:
            return used > self._limit
        except OSError:
            return True


def held_bytes(pid: int) -> int:
    """Return the bytes of deleted files, in memory or on disk, that a process holds open."""
    found: dict[tuple[int, int], int] = {}
    for thread in threads_of(pid):  # the first one may have ended, and holds none then
        with contextlib.suppress(OSError), os.scandir(thread / "fd") as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    status = entry.stat()
                    if stat.S_ISREG(status.st_mode) and not status.st_nlink:
                        found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return sum(found.values())


def _exceeds(folder: Path, limit: int, most: int) -> bool:
    """Tell whether what is below a folder takes more bytes or entries than the limits, however deep it lies."""
    used = entries = 0
    waiting = [(os.open(folder, _FOLDER), ["."])]  # open folders, and names in them yet to be looked at
    try:
        while waiting and used <= limit and entries <= most:
            outer, names = waiting[-1]
            if not names:
                os.close(waiting.pop()[0])
                continue
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # gone, or no folder by now
                inner = os.open(names.pop(), _FOLDER, dir_fd=outer)
                if not names:
                    os.close(waiting.pop()[0])
                waiting.append((inner, []))
                took, count = _list(inner, waiting[-1][1])
                used, entries = used + took, entries + count
    finally:
        for descriptor, _ in waiting:
            os.close(descriptor)
    return used > limit or entries > most


def _list(descriptor: int, folders: list[str]) -> tuple[int, int]:
    """Return the bytes and the number of what an open folder holds; add the names of folders in it to a list."""
    used = count = 0
    with os.scandir(descriptor) as entries:
        for entry in entries:
            count += 1
            with contextlib.suppress(FileNotFoundError):
                used += max(entry.stat(follow_symlinks=False).st_blocks * _BLOCK, _LEAST)
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.name)
    return used, count
