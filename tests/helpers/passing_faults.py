"""One fault of storage: the n-th time that this process opens, lists or changes a file in a folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_EVENTS = frozenset(
    {
        "open",
        *(f"os.{name}" for name in ("listdir", "scandir", "mkdir", "rename", "remove", "rmdir", "utime")),
    }
)


class _Fault:
    """Python's audit hooks see every such call before the system does, and stay for the life of the process."""

    folder = ""
    left = 0
    number = 0
    hooked = False

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.folder or event not in _EVENTS or not isinstance(arguments[0], str | os.PathLike):
            return
        if os.fspath(arguments[0]).startswith(self.folder):
            self.left -= 1
            if self.left == -1:
                raise OSError(self.number, os.strerror(self.number), os.fspath(arguments[0]))


_fault = _Fault()


@contextmanager
def fault_at(moment: int, folder: Path, number: int) -> Iterator[None]:
    """Let one call below a folder fail with an error number, the first (0) or a later one."""
    if not _fault.hooked:
        sys.addaudithook(_fault)
        _Fault.hooked = True
    _fault.folder, _fault.left, _fault.number = str(folder), moment, number
    try:
        yield
    finally:
        _fault.folder = ""


def struck() -> bool:
    """Whether the last fault came."""
    return _fault.left < 0
