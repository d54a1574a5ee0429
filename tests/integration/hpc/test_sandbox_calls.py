"""The filter of system calls, run instruction by instruction for both architectures, and on this one."""

from __future__ import annotations

import errno
import os
import socket

import pytest

from hpc.sandbox.inside.seccomp import assemble_bpf, available, seccomp_rules
from hpc.sandbox.inside.syscall_numbers import CALLS, MACHINES

ME, LAUNCHER, CALLER = 300, 200, 100
ALLOWED, REFUSED, IGNORED, UNKNOWN = 0x7FFF0000, 0x50000 | errno.EPERM, 0x50000, 0x50000 | errno.ENOSYS
STRICT = {"local_sockets": False, "attributes": False, "signals": False, "nameless_memory": False}
UNSUPPORTED = 0x50000 | errno.EOPNOTSUPP
LENIENT = dict.fromkeys(STRICT, True)


def verdict(code, architecture: int, number: int, *arguments: int) -> int:
    """Run a filter on a call, as the kernel does."""
    seen = {0: number, 4: architecture} | {
        16 + 8 * n: value & 0xFFFFFFFF for n, value in enumerate(arguments)
    }
    value = at = 0
    while True:
        operation, jump, otherwise, operand = code[at]
        at += 1
        match operation:
            case 0x20:
                value = seen[operand]
            case 0x54:
                value &= operand
            case 0x15:
                at += jump if value == operand else otherwise
            case 0x35:
                at += jump if value >= operand else otherwise
            case 0x06:
                return operand


@pytest.fixture(params=MACHINES)
def ask(request):
    """Ask a filter about a call by its name; calls that an architecture does not have are never asked for."""
    column, architecture = MACHINES[request.param]

    def _ask(spared: dict[str, bool], name: str, *arguments: int) -> int | None:
        code = assemble_bpf(request.param, seccomp_rules(ME, (LAUNCHER, CALLER), **spared))
        number = CALLS[name][column]
        return None if number is None else verdict(code, architecture, number, *arguments, 0, 0, 0)

    return _ask


NEW_USER, THREAD, SHARED, PRIVATE, NAMELESS, FIXED = 0x10000000, 0x3D0F00, 1, 2, 0x20, 0x10
OTHER_WAYS = {
    "owner of a file": (("fcntl", 5, 8, LAUNCHER), REFUSED, REFUSED),
    "owner of a file by its kind": (("fcntl", 5, 15, 0), REFUSED, REFUSED),
    "signal of a file": (("fcntl", 5, 10, 9), REFUSED, REFUSED),
    "lock": (("fcntl", 5, 6, 0), ALLOWED, ALLOWED),
    "owner of a socket": (("ioctl", 5, 0x8901, 0), REFUSED, REFUSED),
    "group of a socket": (("ioctl", 5, 0x8902, 0), REFUSED, REFUSED),
    "size of a terminal": (("ioctl", 1, 0x5413, 0), ALLOWED, ALLOWED),
    "process with a user space": (("clone", NEW_USER | 17, 0), REFUSED, REFUSED),
    "process with a network": (("clone", 0x40000000 | 17, 0), REFUSED, REFUSED),
    "fork": (("clone", 0x1200011, 0), ALLOWED, ALLOWED),
    "thread": (("clone", THREAD, 0), ALLOWED, ALLOWED),
    "process by a structure": (("clone3", 0, 88), UNKNOWN, UNKNOWN),
    "reserved disk": (("fallocate", 5, 0, 0, 1 << 30), UNSUPPORTED, UNSUPPORTED),
    "large buffers": (("setsockopt", 5, 1, 7, 0, 4), IGNORED, IGNORED),
    "no delay": (("setsockopt", 5, 6, 1, 0, 4), ALLOWED, ALLOWED),
    "file without a name": (("memfd_create", 0, 0), REFUSED, ALLOWED),
    "file through a socket": (("sendmsg", 5, 0, 0), REFUSED, ALLOWED),
    "files through a socket": (("sendmmsg", 5, 0, 0), REFUSED, ALLOWED),
    "shared memory without a name": (("mmap", 0, 4096, 3, SHARED | NAMELESS), REFUSED, ALLOWED),
    "memory of its own": (("mmap", 0, 4096, 3, PRIVATE | NAMELESS | FIXED), ALLOWED, ALLOWED),
    "shared file": (("mmap", 0, 4096, 3, SHARED, 5), ALLOWED, ALLOWED),
}


@pytest.mark.parametrize("way", OTHER_WAYS)
def test_ways_that_a_look_from_outside_would_miss(ask, way):
    call, strict, lenient = OTHER_WAYS[way]
    assert ask(STRICT, *call) == strict
    assert ask(LENIENT, *call) == lenient


@pytest.mark.parametrize(
    "name",
    [
        *("ptrace", "process_vm_readv", "pidfd_getfd", "pidfd_send_signal", "io_uring_setup", "ioprio_set"),
        *("mount", "unshare", "setns", "fsopen", "open_tree"),
        *("shmget", "msgget", "semget", "mq_open", "add_key", "request_key", "keyctl"),
    ],
)
@pytest.mark.parametrize("spared", [STRICT, LENIENT])
def test_always_refused(ask, name, spared):
    assert ask(spared, name) == REFUSED


def test_a_process_stays_on_its_processors(ask):
    assert (ask(LENIENT, "sched_setaffinity", 0), ask(LENIENT, "sched_setaffinity", LAUNCHER)) == (
        IGNORED,
        REFUSED,
    )


@pytest.mark.parametrize("name", ["prlimit64", "sched_setattr", "sched_setscheduler"])
def test_a_process_changes_itself_only(ask, name):
    assert ask(LENIENT, name, 0) == ALLOWED
    assert ask(LENIENT, name, LAUNCHER) == ask(LENIENT, name, ME + 1) == REFUSED


def test_open_files_cannot_be_hidden_from_the_watcher(ask):
    assert (ask(LENIENT, "prctl", 4), ask(LENIENT, "prctl", 15)) == (REFUSED, ALLOWED)


def test_priority_is_lowered_for_oneself_only(ask):
    assert ask(LENIENT, "setpriority", os.PRIO_PROCESS, 0) == ALLOWED
    assert ask(LENIENT, "setpriority", os.PRIO_PROCESS, LAUNCHER) == REFUSED
    assert ask(LENIENT, "setpriority", os.PRIO_USER, 0) == REFUSED


@pytest.mark.parametrize("name", ["kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"])
def test_signals(ask, name):
    for spared in (STRICT, LENIENT):
        assert [ask(spared, name, receiver) for receiver in (0, ME, -ME)] == [ALLOWED] * 3
        for watcher in (LAUNCHER, -LAUNCHER, CALLER, -CALLER, -1):
            assert ask(spared, name, watcher) == REFUSED
    assert (ask(STRICT, name, ME + 1), ask(LENIENT, name, ME + 1)) == (REFUSED, ALLOWED)


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, 40])
def test_no_socket_of_a_network(ask, family):
    assert ask(LENIENT, "socket", family) == ask(STRICT, "socket", family) == REFUSED


def test_local_sockets(ask):
    assert ask(LENIENT, "socket", socket.AF_UNIX) == ALLOWED
    assert ask(STRICT, "socket", socket.AF_UNIX) == REFUSED
    pair = [socket.SOCK_STREAM | socket.SOCK_CLOEXEC, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC]
    assert [ask(STRICT, "socketpair", socket.AF_UNIX, kind) for kind in pair] == [ALLOWED, REFUSED]
    assert [ask(LENIENT, "socketpair", socket.AF_UNIX, kind) for kind in pair] == [ALLOWED, ALLOWED]


@pytest.mark.parametrize("name", ["chmod", "fchmodat", "fchown", "utimensat", "setxattr", "removexattr"])
def test_attributes_of_files(ask, name):
    assert ask(STRICT, name) in (IGNORED, None)
    assert ask(LENIENT, name) in (ALLOWED, None)


def test_files_are_truncated_only_by_who_may_write_them(ask):
    assert ask(STRICT, "truncate") == REFUSED
    assert ask(STRICT, "openat2") == UNKNOWN
    flags = [os.O_RDONLY, os.O_WRONLY | os.O_TRUNC, os.O_RDWR | os.O_TRUNC, os.O_RDONLY | os.O_TRUNC]
    expected = [ALLOWED, ALLOWED, ALLOWED, REFUSED]
    assert [ask(STRICT, "openat", 0, 0, flag | os.O_CLOEXEC) for flag in flags] == expected
    assert [ask(STRICT, "open", 0, flag) for flag in flags] in (expected, [None] * 4)


@pytest.mark.parametrize("machine", MACHINES)
def test_calls_of_another_architecture_are_refused(machine):
    code = assemble_bpf(machine, seccomp_rules(ME, (), **LENIENT))
    assert verdict(code, 0x40000003, 4) == REFUSED  # 32-bit x86
    assert verdict(code, MACHINES[machine][1], 1) == ALLOWED
    assert verdict(code, MACHINES[machine][1], 0x40000001) == REFUSED  # x32
    assert max(jump for _, *jumps, _ in code for jump in jumps) < 256
    assert len(code) < 4096


def test_this_machine_has_the_filter():
    if not available():
        pytest.skip("no filter of system calls on this kernel or architecture")
    assert os.uname().machine in MACHINES
