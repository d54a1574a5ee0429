"""What a person sees on standard error while a command works: lines that stay, on a terminal a live one below them."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sharp.document.text import clean, wrapped

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

# Often enough for a clock of seconds.
_PER_SECOND = 2


class LiveLine:
    """Writes lines to standard error; on a terminal it renews one below them: the seconds, and what goes on now.

    `now` returns that text. It is called from another thread as well, while the command computes.
    """

    def __init__(self, now: Callable[[], str]) -> None:
        self._now, self._start = now, time.monotonic()
        self._live = self._started() if sys.stderr.isatty() else None

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
        self.close()
        try:
            yield
        finally:
            if self._live is not None:
                self._live.start()

    def close(self) -> None:
        """Clear the live line."""
        if self._live is not None:
            self._live.stop()

    def _started(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        live = Live(
            console=Console(stderr=True, emoji=False),
            get_renderable=self._renderable,
            refresh_per_second=_PER_SECOND,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        return live

    def _renderable(self) -> RenderableType:
        from rich.text import Text

        seconds = time.monotonic() - self._start
        return Text(f"{seconds:5.0f} s  {clean(self._now())}", no_wrap=True, overflow="ellipsis")
