"""What a sandbox is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unicodedata import category

EVENTS_FD = "SANDBOX_EVENTS_FD"
"""Environment variable that tells a program the descriptor of its private pipe."""

ANSWERS_FD = "SANDBOX_ANSWERS_FD"
"""Environment variable that tells a program the descriptor from which it reads what it is answered."""

PipeResponder = Callable[[str], str | None]
"""Returns the line that a program is answered to a line of its private pipe, or None for no answer."""


FolderReceiver = Callable[[Path], None]
"""Takes the path by which this process, until the run is over, reaches a program's folder in memory."""


def no_answer(line: str) -> None:
    """Answer nothing."""


@dataclass(frozen=True)
class SandboxLimits:
    """What a program may use.

    Wall seconds; resident MB of its whole tree; threads; processes; MB of one file; MB of all files in its
    scratch folder; MB it may write to stdout, stderr and the private pipe together. `output_bytes` is how
    much is kept of each of stdout and stderr, half of it from the end, and `events` how many lines of the private pipe
    and answers there may be. `entries` is how many files and folders the scratch folder may hold.
    """

    wall_s: float
    memory_mb: int
    threads: int = 1
    processes: int = 64
    file_mb: int = 1024
    output_bytes: int = 16_384
    scratch_mb: int = 4096
    output_mb: int = 256
    events: int = 100
    entries: int = 10_000


@dataclass(frozen=True)
class SandboxResult:
    """What was seen of a finished program.

    Exactly one of `exit_code` and `signal` is set, and at most one of the bounds was broken; `timed_out`
    also stands for too much processor time. `broken_at_end` says that one was found broken only when all had ended.
    `stdout` and `stderr` are `printable`. `cpu_s` counts all its processes; `peak_rss_mb` is the largest
    sum of resident sets seen over the tree. `events` pairs each line of the private pipe, and each answer to one,
    with the seconds after the start at which it arrived or was sent.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    memory_exceeded: bool
    processes_exceeded: bool
    wall_s: float
    cpu_s: float
    peak_rss_mb: float
    stdout: str
    stderr: str
    events: tuple[tuple[float, str], ...]
    disk_exceeded: bool = False
    output_exceeded: bool = False
    broken_at_end: bool = False


def printable(text: str) -> str:
    """Return a text without what a terminal would obey: control characters and marks of direction become `?`.

    Line breaks and tabs stay, and a carriage return is a line break.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c in "\n\t" or category(c) not in ("Cc", "Cf", "Cs") else "?" for c in lines)
