"""System calls that Python has no functions for; a refusal is an `OSError`."""

from __future__ import annotations

import ctypes
import os

PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_CAPBSET_DROP = 24
PR_SET_SECCOMP = 22
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int = 0, pointer: int = 0) -> int:
    """Call prctl(2)."""
    return _checked(_libc.prctl(option, *map(ctypes.c_ulong, (value, pointer, 0, 0))))


def syscall(number: int, *arguments: int | bytes | None) -> int:
    """Make a system call by its number; bytes are passed by their address."""
    converted = (ctypes.c_long(item) if isinstance(item, int) else item for item in arguments)
    return _checked(_libc.syscall(ctypes.c_long(number), *converted))


def capset(header: bytes, data: bytes) -> int:
    """Call capset(2)."""
    return _checked(_libc.capset(header, data))


def unshare(flags: int) -> int:
    """Call unshare(2)."""
    return _checked(_libc.unshare(flags))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> int:
    """Call mount(2)."""
    names = (os.fsencode(text) for text in (source, target, kind))
    return _checked(_libc.mount(*names, ctypes.c_ulong(flags), options.encode()))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
