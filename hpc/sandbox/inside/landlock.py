"""Landlock: a process gives up all files but those it names, for itself and all that it starts.

Numbers are those of the kernel's `linux/landlock.h`. Later versions of the interface know more rights;
what a kernel does not know is not asked for.
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from .kernel import syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
SCOPES_SINCE = 6
"""The first version that keeps signals and abstract sockets within."""

_PATH_BENEATH = 1
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}  # how many file rights a version knows; the fifth and later know 16
_READ = 0b1101  # execute, read a file, list a folder
_OF_FILES = 0b1100_0000_0000_0111  # execute, write, read, truncate, control a device
_DEVICES = 1 << 6 | 1 << 11 | 1 << 15  # make character and block devices, control devices
_TCP = 0b11  # bind, connect
_SCOPES = 0b11  # abstract sockets, signals


def abi() -> int:
    """Return the version of the interface that the kernel offers; 0 where it offers none."""
    try:
        return syscall(_CREATE_RULESET, None, 0, _VERSION)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]) -> None:
    """Give up all files but these, TCP, and signals and abstract sockets to processes outside.

    Paths that do not exist are passed over. Raises `OSError` where the kernel refuses; what was there to
    give up depends on `abi`. The caller has set no_new_privs.
    """
    version = abi()
    every = (1 << _RIGHTS.get(version, 16)) - 1
    attributes = struct.pack(
        "=QQQ", every, _TCP if version >= 4 else 0, _SCOPES if version >= SCOPES_SINCE else 0
    )
    ruleset = syscall(_CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for paths, rights in ((readable, _READ), (writable, every & ~_DEVICES), (devices, every)):
            for path in paths:
                _allow(ruleset, path, rights & every)
        syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    try:
        folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        rule = struct.pack("=Qi", rights if folder else rights & _OF_FILES, descriptor)
        syscall(_ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    finally:
        os.close(descriptor)
