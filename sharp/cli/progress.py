"""What a command says on standard error while it works, each line with the seconds since the start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sharp.solvers import Activity


@contextmanager
def work_log(begun: str) -> Iterator[WorkLog]:
    """Give what is told about work; clean up the terminal at the end. `begun` is what is done first."""
    log = WorkLog(begun)
    try:
        yield log
    finally:
        log.close()


class WorkLog:
    """Says lines; on a terminal also what is done now, how long that takes and when the time limit ends it."""

    def __init__(self, begun: str) -> None:
        from sharp.document import LiveLine, WorkRate

        self._start = time.monotonic()
        self._now: Callable[[], str] = lambda: begun
        self._rate = WorkRate()
        self._live = LiveLine(lambda: self._now())
        self.close = self._live.close

    def __call__(self, line: str) -> None:
        """Say a line; what it tells of goes on until the next one."""
        self.begin(line)
        self._live.say(f"[{time.monotonic() - self._start:6.1f} s] {line}")

    def ended(self, line: str) -> None:
        """Say a line about a part of the work; with how much is done, where no live line tells it."""
        counted = self._rate.done and not self._live.shown
        self._live.say(f"[{self._rate.counts()}] {line}" if counted else line)

    def begin(self, now: str | Activity) -> None:
        """Let the live line tell of something else."""
        from sharp.document import lasting

        if isinstance(now, str):
            self._now = lasting(now.strip())
            return
        since = time.monotonic()
        self._now = lambda: activity_text(now, time.monotonic() - since)

    def on_work(self, done: int, total: int, message: str) -> None:
        """Let the live line tell how much of some work is done, and how long the rest takes."""
        self._rate.count(done, total, message)
        self._now = self._rate.text

    def echo(self, text: str) -> None:
        """Print a part of the result, while work goes on."""
        with self._live.hidden():
            click.echo(text)

    def ask(self, questions: Sequence[str]) -> dict[str, str]:
        """Ask questions at the terminal and return the answers."""
        with self._live.hidden():
            return {question: click.prompt(question) for question in questions}


def activity_text(activity: Activity, seconds: float) -> str:
    """Return what a search has been doing for some seconds: what is left of that, to judge by what came before."""
    from sharp.document import duration_text

    parts = [activity.text]
    if activity.expected_s is not None:
        left = activity.expected_s - seconds
        about = f"about {duration_text(round(left))} left"
        parts.append(about if left > 0 else f"expected to take {duration_text(round(activity.expected_s))}")
    left = activity.remaining_s - seconds
    parts.append(f"time limit in {duration_text(round(left))}" if left > 0 else "time limit reached")
    return ", ".join(parts)
