"""What a sandbox is asked and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

EVENTS_FD = "SANDBOX_EVENTS_FD"
"""Environment variable that tells a program the descriptor of its private pipe."""

ANSWERS_FD = "SANDBOX_ANSWERS_FD"
"""Environment variable that tells a program the descriptor from which it reads what it is answered."""

PipeResponder = Callable[[str], str | None]
"""Returns the line that a program is answered to a line of its private pipe, or None for no answer."""


def no_answer(line: str) -> None:
    """Answer nothing."""


@dataclass(frozen=True)
class SandboxLimits:
    """What a program may use.

    Wall seconds; resident MB of its whole tree; threads; processes; MB of one file; MB of all files in its
    scratch folder; MB it may write to stdout, stderr and the private pipe together. `output_bytes` is how
    much is kept of each of stdout and stderr, half of it from the end.
    """

    wall_s: float
    memory_mb: int
    threads: int = 1
    processes: int = 64
    file_mb: int = 1024
    output_bytes: int = 16_384
    scratch_mb: int = 4096
    output_mb: int = 256


@dataclass(frozen=True)
class SandboxResult:
    """What was seen of a finished program.

    Exactly one of `exit_code` and `signal` is set, and at most one of the bounds was broken; `timed_out`
    also stands for too much processor time. `cpu_s` counts all its processes; `peak_rss_mb` is the largest
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
