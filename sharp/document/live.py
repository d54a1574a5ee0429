"""What a person sees on standard error while a command works: lines that stay, on a terminal a live one below them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar

from sharp.document.text import clean, duration_text, left_text, wrapped

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

# Often enough for a clock of seconds.
_PER_SECOND = 2


class WorkRate:
    """Tells how much of counted work is done, and how long the rest takes at the rate since it was first heard of."""

    def __init__(self) -> None:
        self._message, self.done, self._total = "", 0, 0
        self._start = self._last = time.monotonic()
        self._first, self._uncounted = 0, lasting("")

    def count(self, done: int, total: int, message: str) -> None:
        """Hear that so much of some work is done; another message is other work."""
        self._last = time.monotonic()
        if message != self._message:
            # What an earlier call did says nothing about how fast this one is.
            self._message, self._start, self._first = message, self._last, done
            self._uncounted = lasting(message)
        self.done, self._total = done, total

    def text(self) -> str:
        """Return `packing (3/12, 8 s left)`, for this moment; of work in one part what `lasting` does."""
        return self._uncounted() if self._total <= 1 else f"{self._message} ({self.counts()})"

    def counts(self) -> str:
        """Return `3/12, 8 s left`, for this moment."""
        elapsed, since = self._last - self._start, time.monotonic() - self._last
        left = left_text(elapsed, self.done - self._first, self._total - self._first, since=since)
        return f"{self.done}/{self._total}{left}"


def lasting(task: str) -> Callable[[], str]:
    """Return what tells of a task that begins now, of which no part is counted: after two seconds also for how long."""
    begun = time.monotonic()

    def text() -> str:
        seconds = time.monotonic() - begun
        return task if seconds < 2 else f"{task}, for {duration_text(round(seconds))}"

    return text


class LiveLine:
    """Writes lines to standard error; on a terminal it renews one below them: the seconds, and what goes on now.

    `now` returns that text. It is called from another thread as well, while the command computes. A live line that
    begins while there is another takes its place until it is closed.
    """

    _shown: ClassVar[list[Live]] = []

    def __init__(self, now: Callable[[], str]) -> None:
        self._now, self._start = now, time.monotonic()
        self._live: Live | None = None
        if sys.stderr.isatty():
            self._live = self._made()
            if self._shown:
                self._shown[-1].stop()
            self._shown.append(self._live)
            self._live.start()

    @property
    def shown(self) -> bool:
        """Whether there is a live line: standard error is a terminal."""
        return self._live is not None

    def say(self, text: str, style: str = "") -> None:
        """Write a line that stays."""
        if self._live is None:
            sys.stderr.write(f"{clean(text)}\n")
            sys.stderr.flush()
            return
        # Messages of programs are among these lines: no control character of theirs reaches the terminal.
        for line in wrapped(clean(text), self._live.console.width):
            self._live.console.out(line, highlight=False, style=style)

    def refresh(self) -> None:
        """Renew the live line at once."""
        if self._live is not None:
            self._live.refresh()

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Take the live line away while something else is written to the terminal."""
        if self._live is None:
            yield
            return
        self._live.stop()
        try:
            yield
        finally:
            self._live.start()

    def close(self) -> None:
        """Clear the live line."""
        if self._live in self._shown:
            self._shown.remove(self._live)
            self._live.stop()
            if self._shown:
                self._shown[-1].start()

    def _made(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        return Live(
            console=Console(stderr=True, emoji=False),
            get_renderable=self._renderable,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _renderable(self) -> RenderableType:
        from rich.text import Text

        seconds = time.monotonic() - self._start
        return Text(f"{seconds:5.0f} s  {clean(self._now())}", no_wrap=True, overflow="ellipsis")
