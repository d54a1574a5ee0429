"""The log of who opened the test samples of a data file, and when: a line for each evaluation on them.

It lies beside the file, so that everyone who shares the data shares it. Programs in the sandbox reach neither.
"""

from __future__ import annotations

import json
import os
import platform
import pwd
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path


@dataclass(frozen=True)
class TestOpening:
    """One evaluation on test samples: when (UTC), by whom, where, and the SHA-256 of the program."""

    __test__ = False  # pytest takes what is called Test… for a test

    at: str
    user: str
    host: str
    code: str


def log_file(data: Path) -> Path:
    """Return where the openings of a data file are logged."""
    return data.with_name(f"{data.stem}.test-log.jsonl")


def log_opening(data: Path, code: str) -> bool:
    """Append one line, now; return whether that was possible: shared data may be read-only."""
    moment = datetime.now(UTC).isoformat(timespec="seconds")
    opening = TestOpening(
        moment, _user(), platform.node(), sha256(code.encode("utf-8", "replace")).hexdigest()
    )
    try:
        # One write of less than a page to a file opened for appending is not torn by others.
        descriptor = os.open(log_file(data), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        try:
            os.write(descriptor, f"{json.dumps(asdict(opening))}\n".encode())
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def openings(data: Path) -> list[TestOpening]:
    """Return the logged openings of a data file, the first first; lines that cannot be read are left out."""
    try:
        lines = log_file(data).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        try:
            found.append(TestOpening(**json.loads(line)))
        except (ValueError, TypeError):
            continue
    return found


def _user() -> str:
    """Return the name of the user that owns this process, whatever its environment says."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user id without a name, as in some containers
        return str(os.getuid())
