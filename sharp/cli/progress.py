"""What a command says on standard error while it works, each line with the seconds since the start."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
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
        from sharp.document import LiveLine

        self._start = self._since = time.monotonic()
        self._now: str | Activity = begun
        self._live = LiveLine(self._text)
        self.close = self._live.close

    def __call__(self, line: str) -> None:
        """Say a line; what it tells of goes on until the next one."""
        self.begin(line)
        self._live.say(f"[{time.monotonic() - self._start:6.1f} s] {line}")

    def ended(self, line: str) -> None:
        """Say a line about a part that is done; the same work goes on."""
        self._live.say(line)

    def begin(self, now: str | Activity) -> None:
        """Let the live line tell of something else."""
        self._now, self._since = now, time.monotonic()

    def echo(self, text: str) -> None:
        """Print a part of the result, while work goes on."""
        with self._live.hidden():
            click.echo(text)

    def ask(self, questions: Sequence[str]) -> dict[str, str]:
        """Ask questions at the terminal and return the answers."""
        with self._live.hidden():
            return {question: click.prompt(question) for question in questions}

    def _text(self) -> str:
        now, seconds = self._now, time.monotonic() - self._since
        return now.strip() if isinstance(now, str) else activity_text(now, seconds)


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
