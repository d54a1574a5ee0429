"""A filter of system calls: what no numerical program needs, and what reaches beyond its own processes.

The filter (seccomp) is a short program for the kernel's packet filter, assembled here. It refuses, with
EPERM: sockets of the network; memory, queues and keyrings that outlive a process; tracing; namespaces and
mounts; io_uring, which goes round the filter; programs, counters and page faults of the kernel; calls that change
or signal other processes than the program's own, by way of a file's owner too; disk that is reserved at once; and, if
asked to, shared memory without a name and descriptors sent through sockets, which a look from outside would miss, and
the ways to change a file that Landlock does not see.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Iterable, Iterator

from .kernel import PR_SET_DUMPABLE, PR_SET_SECCOMP, prctl, syscall
from .syscall_numbers import CALLS, MACHINES

_FILTER_MODE, _SET_FILTER, _SPEC_ALLOW = 2, 1, 1 << 2
_LOAD, _AND, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
_ALLOW, _REFUSE, _IGNORE = 0x7FFF0000, 0x00050000 | errno.EPERM, 0x00050000
_UNKNOWN = 0x00050000 | errno.ENOSYS
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # offsets of what the filter sees of a call
_OTHER_ABI = 0x40000000  # x86-64 also takes calls numbered from here on
_UNIX, _DATAGRAM, _TYPE = 1, 2, 0xF
_UNSUPPORTED = 0x00050000 | errno.EOPNOTSUPP
_OWNERS = (
    8,
    10,
    15,
)  # F_SETOWN, F_SETSIG, F_SETOWN_EX of fcntl: whom the kernel signals when a file has news
_OWNERS_BY_IOCTL = (0x8901, 0x8902)  # FIOSETOWN, SIOCSPGRP
_NEW_SPACES = 0x7E020000  # all flags CLONE_NEW* that clone takes
_SHARED_NAMELESS = 0x21  # MAP_SHARED | MAP_ANONYMOUS
_MMAP_FLAGS, _BUFFERS = 3, (7, 8)  # SO_SNDBUF, SO_RCVBUF

_OUTLIVING = ("shmget", "msgget", "semget", "mq_open", "add_key", "request_key", "keyctl")
_INTRUDING = ("ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "pidfd_send_signal")
_REMODELLING = ("unshare", "setns", "mount", "fsopen", "open_tree")
_OF_THE_KERNEL = ("io_uring_setup", "ioprio_set", "bpf", "perf_event_open", "userfaultfd")
_OF_ONESELF = ("prlimit64", "sched_setattr", "sched_setparam", "sched_setscheduler")
_SIGNALS = ("kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_ATTRIBUTES = (
    *("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat"),
    *("utime", "utimes", "futimesat", "utimensat", "file_setattr"),
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)

_REFUSED = (_RETURN, 0, 0, _REFUSE)

Instruction = tuple[int, int, int, int]  # operation, jumps where true and where false, operand
Rule = tuple[str, list[Instruction]]  # a call, and what follows its recognition, which ends in a return


def available() -> bool:
    """Tell whether this kernel filters calls and this architecture is known here."""
    if platform.machine() not in MACHINES or ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    try:
        prctl(PR_SET_SECCOMP, _FILTER_MODE, 0)
    except OSError as error:
        return error.errno == errno.EFAULT  # it would have read the filter, which is not there
    return False


def install_seccomp_filter(watchers: Iterable[int], **spared: bool) -> None:
    """Install the filter of `seccomp_rules` in this process, for good and for all that it starts.

    The caller has set no_new_privs. Raises `OSError`.
    """
    machine = platform.machine()
    code = assemble_bpf(machine, seccomp_rules(os.getpid(), watchers, **spared))
    text = b"".join(struct.pack("=HBBI", *instruction) for instruction in code)
    kept = ctypes.create_string_buffer(text, len(text))
    program = struct.pack("=H6xQ", len(code), ctypes.addressof(kept))
    number = CALLS["seccomp"][MACHINES[machine][0]] or 0
    try:  # some kernels slow a filtered program down unless told not to; the oldest know no such flag
        syscall(number, _SET_FILTER, _SPEC_ALLOW, program)
    except OSError:
        syscall(number, _SET_FILTER, 0, program)


def seccomp_rules(
    me: int,
    watchers: Iterable[int],
    *,
    local_sockets: bool,
    attributes: bool,
    signals: bool,
    nameless_memory: bool,
) -> list[Rule]:
    """Return the rules for a process and all that it starts.

    `watchers` are processes that must not be signalled. With `local_sockets` the program may have Unix
    sockets; without, only connected pairs of them. Without `attributes`, attempts to change modes, owners,
    times and extended attributes of files are passed over, and files are not truncated by name. Without
    `signals` no process but the first may be signalled. Without `nameless_memory` there is no memory that processes
    share and that has no file which shows its size, and no file is sent through a socket.
    """
    receivers = _none_of(watchers) if signals else _only(0, me, -me)
    return [
        *_always(receivers),
        *_sockets(local_sockets),
        *([] if nameless_memory else _nameless()),
        *([] if attributes else _of_files()),
    ]


def assemble_bpf(machine: str, chosen: Iterable[Rule]) -> list[Instruction]:
    """Return the whole filter for an architecture; what no rule names is allowed."""
    column, architecture = MACHINES[machine]
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        *((_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _REFUSE)),
        (_LOAD, 0, 0, _NUMBER),
        *((_AT_LEAST, 0, 1, _OTHER_ABI), (_RETURN, 0, 0, _REFUSE)),
    ]
    for name, body in chosen:
        if (number := CALLS[name][column]) is not None:
            code += [(_EQUAL, 0, len(body), number), *body]
    return [*code, (_RETURN, 0, 0, _ALLOW)]


def _always(receivers: list[Instruction]) -> Iterator[Rule]:
    for name in (*_OUTLIVING, *_INTRUDING, *_REMODELLING, *_OF_THE_KERNEL):
        yield name, [(_RETURN, 0, 0, _REFUSE)]
    for name in _OF_ONESELF:
        yield name, _only(0)
    yield "sched_setaffinity", [_load(0), *_if(0, _IGNORE), _REFUSED]  # libraries pin themselves, in vain
    yield from _unwatched()
    yield "prctl", [_load(0), *_if(PR_SET_DUMPABLE, _REFUSE), (_RETURN, 0, 0, _ALLOW)]  # it hides open files
    yield (
        "setpriority",
        [_load(0), (_EQUAL, 1, 0, os.PRIO_PROCESS), (_RETURN, 0, 0, _REFUSE), *_only(0, of=1)],
    )
    for name in _SIGNALS:
        yield name, receivers


def _unwatched() -> Iterator[Rule]:
    """Yield what stops signals, namespaces and disk that come about in other ways than those that are looked at."""
    yield "fcntl", [_load(1), *_each(_OWNERS), (_RETURN, 0, 0, _ALLOW)]
    yield "ioctl", [_load(1), *_each(_OWNERS_BY_IOCTL), (_RETURN, 0, 0, _ALLOW)]
    yield "clone", [_load(0), (_AND, 0, 0, _NEW_SPACES), (_EQUAL, 1, 0, 0), _REFUSED, (_RETURN, 0, 0, _ALLOW)]
    yield "clone3", [(_RETURN, 0, 0, _UNKNOWN)]  # its flags cannot be seen; the C library falls back to clone
    yield "setsockopt", [_load(2), *_each(_BUFFERS, _IGNORE), (_RETURN, 0, 0, _ALLOW)]
    yield "fallocate", [(_RETURN, 0, 0, _UNSUPPORTED)]  # gigabytes in a moment; the C library writes instead


def _nameless() -> Iterator[Rule]:
    """Yield what stops files and memory that live on in a socket, or in a mapping that was given back page by page."""
    for name in ("sendmsg", "sendmmsg", "memfd_create", "memfd_secret"):
        yield name, [_REFUSED]
    nameless = [(_AND, 0, 0, _SHARED_NAMELESS), *_if(_SHARED_NAMELESS, _REFUSE)]
    yield "mmap", [_load(_MMAP_FLAGS), *nameless, (_RETURN, 0, 0, _ALLOW)]


def _sockets(local: bool) -> Iterator[Rule]:
    if local:
        yield "socket", _only(_UNIX)
    else:  # one of a pair of datagram sockets could be turned to another address
        yield "socket", [(_RETURN, 0, 0, _REFUSE)]
        yield "socketpair", [_load(1), (_AND, 0, 0, _TYPE), *_if(_DATAGRAM, _REFUSE), (_RETURN, 0, 0, _ALLOW)]


def _of_files() -> Iterator[Rule]:
    """Yield what stops changes that Landlock does not see, or not in its first two versions."""
    for name in _ATTRIBUTES:
        yield name, [(_RETURN, 0, 0, _IGNORE)]
    yield "truncate", [(_RETURN, 0, 0, _REFUSE)]
    for name, flags in (("open", 1), ("openat", 2)):  # a file opened to be read is truncated all the same
        masked = [_load(flags), (_AND, 0, 0, os.O_TRUNC | os.O_ACCMODE)]
        yield name, [*masked, *_if(os.O_TRUNC | os.O_RDONLY, _REFUSE), (_RETURN, 0, 0, _ALLOW)]
    yield "openat2", [(_RETURN, 0, 0, _UNKNOWN)]  # its flags cannot be seen; every caller has another way


def _only(*values: int, of: int = 0) -> list[Instruction]:
    """Allow some values of an argument."""
    checks = [instruction for value in values for instruction in _if(value, _ALLOW)]
    return [_load(of), *checks, (_RETURN, 0, 0, _REFUSE)]


def _none_of(watchers: Iterable[int]) -> list[Instruction]:
    """Refuse a process, its group, and every process (-1) as the receiver of a signal."""
    processes = set(watchers) - {0}
    receivers = sorted({-1} | processes | {-process for process in processes})
    checks = [instruction for receiver in receivers for instruction in _if(receiver, _REFUSE)]
    return [_load(0), *checks, (_RETURN, 0, 0, _ALLOW)]


def _each(values: Iterable[int], verdict: int = _REFUSE) -> list[Instruction]:
    return [instruction for value in values for instruction in _if(value, verdict)]


def _if(value: int, verdict: int) -> list[Instruction]:
    return [(_EQUAL, 0, 1, value & 0xFFFFFFFF), (_RETURN, 0, 0, verdict)]


def _load(argument: int) -> Instruction:
    """Load the low half of an argument; what the filter looks at is all of 32 bits."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument)
