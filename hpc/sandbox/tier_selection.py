"""Choosing a tier by trying each: what counts is what a small program really cannot do."""

from __future__ import annotations

import json
import logging
import os
import platform
import select
import socket
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from hpc.errors import InfrastructureError
from hpc.sandbox.control_groups import MEMORY, PROCESSORS, TASKS, kernel_holds
from hpc.sandbox.interpreter import ForkServerInterpreter, FreshInterpreter, Interpreter
from hpc.sandbox.protocol import SandboxLimits
from hpc.sandbox.tiers import (
    ApptainerSandbox,
    BubblewrapSandbox,
    LandlockSandbox,
    RlimitsSandbox,
    RunTerms,
    Tier,
)
from hpc.sandbox.view import AccessPaths

_log = logging.getLogger(__name__)

TierName = Literal["bubblewrap", "landlock", "apptainer", "rlimits"]

_HINTS = {
    "bubblewrap": "For bubblewrap, users must be allowed to make namespaces (user.max_user_namespaces, on Ubuntu "
    "kernel.apparmor_restrict_unprivileged_userns).",
    "landlock": "For Landlock, the kernel must be Linux 5.13 or later and name it in its lsm parameter.",
    "apptainer": "For Apptainer, name an image with Python and the libraries that solvers import.",
}
_BOUNDS = SandboxLimits(wall_s=60, memory_mb=1024, scratch_mb=64)
_SHARED = "/var/tmp"  # noqa: S108  of which programs have none of their own, as they have of /tmp
_PROGRAM = """
import json, os, socket, sys
outside, tcp_port, udp_port = sys.argv[1], *map(int, sys.argv[2:])
def fails(action):
    try: action()
    except OSError: return True
    return False
def send():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp: udp.sendto(b"x", ("127.0.0.1", udp_port))
def connect():
    with socket.create_connection(("127.0.0.1", tcp_port), 5): pass
def shared():
    open("/dev/shm/inside", "x").close(); os.unlink("/dev/shm/inside")
open("inside", "w").write("x")
fails(send)
print(json.dumps({
    "read files outside": not fails(lambda: open(outside + "/secret").read()),
    "write files outside": not fails(lambda: open(outside + "/written", "w").write("x")),
    "open TCP connections": not fails(connect),
    "shared": not fails(shared),
}))
"""


@dataclass(frozen=True)
class SandboxPolicy:
    """Which tier to use: the best that works here (`auto`) or a named one; `require` refuses mere limits.

    `image` is an Apptainer image, with a Python of its own; without one that tier is left out.
    """

    tier: Literal["auto", "bubblewrap", "landlock", "apptainer", "rlimits"] = "auto"
    require: bool = False
    image: Path | None = None


@dataclass(frozen=True)
class TierProbe:
    """What trying a tier came to; `reason` is a sentence in either case."""

    tier: TierName
    usable: bool
    reason: str


class Confinement(NamedTuple):
    """What a small program could do that it should not, and whether it had shared memory and a folder in memory."""

    trespasses: list[str]
    shared_memory: bool
    bounded_folder: bool


_LIMITS_ONLY = TierProbe("rlimits", False, "It only limits resources, and a sandbox is required.")


def probe_tiers(image: Path | None = None) -> tuple[TierProbe, ...]:
    """Try every tier, strongest first; what each came to is remembered for the life of this process."""
    return tuple(_try(name, image) for name in get_args(TierName))


def open_interpreter(policy: SandboxPolicy, *, warm: bool = True) -> Interpreter:
    """Return an interpreter of the strongest tier that the policy allows and that works here.

    It is warm if asked for and if forks can be kept apart in that tier. Raises `InfrastructureError` where
    no tier is usable, with what was tried and what would help.
    """
    names = get_args(TierName) if policy.tier == "auto" else (policy.tier,)
    failed: list[TierProbe] = []
    for name in names:
        probed = _LIMITS_ONLY if name == "rlimits" and policy.require else _try(name, policy.image)
        if probed.usable:
            if name == "rlimits":
                _warn("; ".join(f"{item.tier}: {item.reason}" for item in failed))
            return _interpreter(_sandbox(name, policy.image), failed, warm)
        if not (policy.tier == "auto" and name == "apptainer" and policy.image is None):
            failed.append(probed)
    tried = " ".join(f"{item.tier}: {item.reason}" for item in failed)
    hints = " ".join(_HINTS[item.tier] for item in failed if item.tier in _HINTS)
    raise InfrastructureError(
        f"No sandbox that the policy allows ({policy.tier}) works on {platform.node()}. {tried} {hints} "
        "See docs/explanations/sandbox.md."
    )


def _interpreter(sandbox: Tier, failed: list[TierProbe], warm: bool) -> Interpreter:
    sentences = [f"Programs can {_enumerated(sandbox.known_gaps())}."]
    sentences += [f"Not {item.tier}: {item.reason}" for item in failed]
    if not warm:
        return FreshInterpreter(sandbox, " ".join(sentences))
    if sandbox.isolates_forks():
        return ForkServerInterpreter(sandbox, " ".join(sentences))
    sentences.append(
        "Each program starts its own interpreter, as this kernel cannot keep forks of one apart."
    )
    return FreshInterpreter(sandbox, " ".join(sentences))


@cache
def _warn(reason: str) -> None:
    """Warn, once in a process, that there is no protection of files."""
    _log.warning(
        "No OS sandbox on %s%s. Generated code runs with your permissions and can read and change your files. "
        "Require a sandbox to refuse this, or name an Apptainer image. See docs/explanations/sandbox.md.",
        platform.node(),
        f" ({reason})" if reason else "",
    )


def _sandbox(name: TierName, image: Path | None) -> Tier:
    """Return a tier; raises `InfrastructureError` for one that lacks its image."""
    if name == "apptainer":
        if image is None:
            raise InfrastructureError("No image is configured.")
        return ApptainerSandbox(image)
    return {"bubblewrap": BubblewrapSandbox, "landlock": LandlockSandbox, "rlimits": RlimitsSandbox}[name]()


@cache
def _try(name: TierName, image: Path | None) -> TierProbe:
    """Run a small program in a tier that tries what it must not be able to do."""
    try:
        sandbox = _sandbox(name, image)
        found = _confinement(sandbox)
    except InfrastructureError as error:
        return TierProbe(name, False, str(error))
    if found.trespasses and name != "rlimits":
        return TierProbe(name, False, f"Programs can {_enumerated(found.trespasses)}.")
    lacking = "" if found.shared_memory else " They have no shared memory, so pools of processes fail."
    return TierProbe(name, True, f"Programs can {_enumerated(sandbox.known_gaps())}.{lacking}")


def limit_keepers() -> dict[str, str]:
    """Return who keeps programs to each limit here, by trying whether the kernel takes it on."""
    held = kernel_holds()
    by_group, looked_at = "the kernel, by a control group", "a look every 0.05 s"
    return {
        "memory": by_group if MEMORY in held else looked_at,
        "processes": f"a look every 0.05 s, and {by_group}" if TASKS in held else looked_at,
        "processors": by_group if PROCESSORS in held else "the kernel, by affinity",
        "files": "the kernel, by a file system in memory"
        if _bounds_folders()
        else "the kernel for each file, a look every 0.25 s for all",
    }


def _bounds_folders() -> bool:
    with suppress(InfrastructureError):
        return _confinement(RlimitsSandbox()).bounded_folder
    return False


def _confinement(sandbox: Tier) -> Confinement:
    """Return what a program in a tier managed to do; raises `InfrastructureError` if it cannot run."""
    with (
        tempfile.TemporaryDirectory() as scratch,
        tempfile.TemporaryDirectory(dir=_SHARED if os.access(_SHARED, os.W_OK) else None) as outside,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        (Path(outside) / "secret").write_text("secret")
        udp.bind(("127.0.0.1", 0))
        ports = (str(server.getsockname()[1]) for server in (tcp, udp))
        folders: list[Path] = []
        done = sandbox.run(
            [sandbox.python, "-I", "-S", "-B", "-c", _PROGRAM, outside, *ports],
            RunTerms(AccessPaths.of((), [Path(scratch)]), _BOUNDS, take_folder=folders.append),
        )
        # It may well have sent one, into a network of its own.
        received = bool(select.select([udp], [], [], 0)[0])
    if done.exit_code != 0:
        lines = done.stderr.strip().splitlines() or [f"signal {done.signal}, exit code {done.exit_code}"]
        raise InfrastructureError(f"A test program failed: {lines[-1]}.")
    attempts = json.loads(done.stdout) | {"send UDP datagrams": received}
    shared = attempts.pop("shared")
    trespasses = [trespass for trespass, succeeded in attempts.items() if succeeded]
    return Confinement(trespasses, shared, bool(folders))


def _enumerated(items: list[str]) -> str:
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
