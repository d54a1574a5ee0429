"""Checks of a folder on shared storage: does it keep what the record of a run relies on?"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from hpc.doctor.findings import Finding, failure, good, note, warning
from hpc.files import sync_directory, temp_path, write_atomic

_GB = 1 << 30
_FREE_GB = 5
_FREE_FILES = 20_000
_SLOW_S = 0.25
SKEW_S = 5.0
"""Clocks that differ by more than this are reported."""
# A run must be seen by every node that works on it: these file systems belong to one machine.
_LOCAL = frozenset({"btrfs", "ext3", "ext4", "overlay", "ramfs", "tmpfs", "xfs", "zfs"})
_ESCAPE = re.compile(r"\\([0-7]{3})")


def file_system(folder: Path, mounts: str) -> str:
    """Return the type of the file system that a folder lies on, by the text of `/proc/mounts`."""
    found: tuple[int, str] = (-1, "unknown")
    for line in mounts.splitlines():
        _device, point, kind, *_ = line.split(" ")
        place = Path(_ESCAPE.sub(lambda octal: chr(int(octal[1], 8)), point))
        if folder.is_relative_to(place):
            found = max(found, (len(place.parts), kind))
    return found[1]


def check_kind(folder: Path, *, shared: bool) -> Iterator[Finding]:
    """Name the file system; where other nodes have to see the folder, doubt one that is this machine's own."""
    kind = file_system(folder.resolve(), Path("/proc/mounts").read_text())
    if shared and kind in _LOCAL:
        remedy = "Put runs on storage that compute nodes see, and check that folder (--dir DIR)."
        yield warning("file system", f"{folder} is on {kind}, usually one machine's own", remedy)
    else:
        yield good("file system", f"{folder} is on {kind}")


def check_writing(folder: Path) -> Iterator[Finding]:
    """Write, flush and rename a file, and claim a name by a hard link, as journals and leases do."""
    remedy = "Put runs on another file system; without this a killed job may leave half a file."
    probe = temp_path(folder / "doctor")
    start = time.monotonic()
    try:
        for content in (b"old", b"new"):
            write_atomic(probe, content)
        taken = time.monotonic() - start
        if probe.read_bytes() != b"new":
            yield failure("rename", f"{folder}: a file replaced by renaming shows its old content", remedy)
            return
        sync_directory(folder)
        yield good("rename", f"write, fsync and rename work ({taken / 2 * 1000:.0f} ms each)")
        if taken / 2 > _SLOW_S:
            advice = "Expect slow journals here; a scratch file system is usually faster than home."
            yield warning("fsync", f"a flushed write takes {taken / 2:.2f} s", advice)
        yield from _check_link(probe)
        yield from _check_server_clock(probe)
    finally:
        probe.unlink(missing_ok=True)


def check_space(folder: Path) -> Iterator[Finding]:
    """Compare the free space and the free inodes with what a few runs need."""
    usage = os.statvfs(folder)
    free = usage.f_bavail * usage.f_frsize / _GB
    remedy = "Remove old runs or choose another folder (--dir DIR)."
    space = f"{free:.1f} GB free in {folder}"
    yield good("free space", space) if free >= _FREE_GB else warning("free space", space, remedy)
    if usage.f_files and usage.f_favail < _FREE_FILES:
        yield warning("free files", f"{usage.f_favail} files may still be made in {folder}", remedy)


def check_quota(folder: Path) -> Iterator[Finding]:
    """Ask the file system's own command for a quota that is used up."""
    kind = file_system(folder.resolve(), Path("/proc/mounts").read_text())
    argv = (
        ["lfs", "quota", "-q", "-u", str(os.getuid()), str(folder)] if kind == "lustre" else ["quota", "-w"]
    )
    if shutil.which(argv[0]) is None:
        yield note("quota", f"no command {argv[0]}", "Look your quota up in your site's own way.")
        return
    done = subprocess.run(argv, capture_output=True, text=True, timeout=30, check=False)
    # Both commands mark what exceeds its limit by a star.
    over = [line.strip() for line in done.stdout.splitlines() if re.search(r"\d\*", line)]
    if over:
        yield failure("quota", f"a quota is used up: {over[0]}", "Remove files or ask for more.")
    else:
        yield good("quota", "no quota is used up")


def _check_link(probe: Path) -> Iterator[Finding]:
    claim = temp_path(probe)
    try:
        os.link(probe, claim)
        try:
            os.link(probe, claim)
        except FileExistsError:
            yield good("hard links", "a name can be claimed by one process only; flock is not relied on")
            return
        yield failure("hard links", "a name was claimed twice", "Put runs on another file system.")
    except OSError as error:
        remedy = "Put runs on another file system: a controller claims its run by a hard link."
        yield failure("hard links", f"hard links fail: {error.strerror}", remedy)
    finally:
        claim.unlink(missing_ok=True)


def _check_server_clock(probe: Path) -> Iterator[Finding]:
    before = time.time()
    probe.touch()
    skew = seconds_outside(probe.stat().st_mtime, before, time.time())
    if abs(skew) > SKEW_S:
        remedy = "Tell your administrators: heartbeats are compared with the time stamps of files."
        yield warning("storage clock", f"time stamps of files are {skew:+.0f} s off", remedy)
    else:
        yield good("storage clock", "time stamps of files agree with the clock")


def seconds_outside(moment: float, earliest: float, latest: float) -> float:
    """Return by how much a moment lies outside an interval, negative where it is too early."""
    return min(moment - earliest, 0.0) + max(moment - latest, 0.0)
