"""Being told to leave: SIGTERM or SIGUSR2, by Slurm or by a person, from the first moment of a process on."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from hpc.quiescence import happens_within

SIGNALS = (signal.SIGTERM, signal.SIGUSR2)


class StopSignal:
    """Whether this process was told to leave. Slurm sends one signal or the other for the same reasons."""

    def __init__(self) -> None:
        self.received = False
        self._news: asyncio.Event | None = None

    def listen(self) -> None:
        """Take the signals from now on."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self._tell())

    @contextmanager
    def in_loop(self) -> Iterator[None]:
        """Take the signals within the running event loop, so that they wake who waits."""
        loop, self._news = asyncio.get_running_loop(), asyncio.Event()
        for number in SIGNALS:
            loop.add_signal_handler(number, self._tell)
        try:
            if self.received:
                self._news.set()
            yield
        finally:
            for number in SIGNALS:
                loop.remove_signal_handler(number)
            self.listen()

    async def within(self, seconds: float) -> bool:
        """Wait for so long at most, in the loop, and return whether it was told."""
        assert self._news is not None, "to be asked within `in_loop`"
        await happens_within(self._news, seconds)
        return self.received

    def _tell(self) -> None:
        self.received = True
        if self._news is not None:
            self._news.set()
