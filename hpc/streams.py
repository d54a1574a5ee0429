"""Reading what another program writes: bounded text, and lines with the moment at which they arrived."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from functools import partial
from typing import IO

_MAX_EVENTS = 100
_MAX_LINE = 200
_CHUNK = 1 << 16


class Capped:
    """Keeps the first and the last bytes of a stream, `limit` in all, and counts those between."""

    def __init__(self, limit: int) -> None:
        self._half = limit // 2
        self._head, self._tail, self._dropped = bytearray(), bytearray(), 0

    def add(self, data: bytes) -> None:
        """Take in more bytes."""
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        excess = max(len(self._tail) - self._half, 0)
        del self._tail[:excess]
        self._dropped += excess

    def text(self) -> str:
        """Return what was kept, with a note in the place of what was not; undecodable bytes are replaced."""
        gap = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return bytes(self._head + gap + self._tail).decode(errors="replace")


class Events:
    """The lines of a private pipe, each with the monotonic time of its arrival; a flood is cut off.

    `answer` is asked with every line; what it returns, if anything, is kept as a line of its own, and sent.
    """

    def __init__(self, answer: Callable[[str], str | None], send: Callable[[str], None]) -> None:
        self.lines: list[tuple[float, str]] = []
        self._answer, self._send = answer, send
        self._unfinished = b""

    def add(self, data: bytes) -> None:
        """Take in more bytes."""
        now = time.monotonic()
        *complete, rest = (self._unfinished + data).split(b"\n")
        self._unfinished = rest[:_MAX_LINE]
        for line in complete:
            self._take(now, line[:_MAX_LINE].decode(errors="replace"))

    def _take(self, moment: float, line: str) -> None:
        if len(self.lines) >= _MAX_EVENTS:
            return
        self.lines.append((moment, line))
        if (answer := self._answer(line)) is not None:
            self.lines.append((time.monotonic(), answer))
            self._send(answer)


class Streams:
    """Reads several pipes at once, each into its receiver, until all are closed at the far end."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._pipes: list[IO[bytes]] = []
        self.bytes_read = 0

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        for pipe in self._pipes:
            pipe.close()
        self._selector.close()

    def add(self, pipe: IO[bytes], receive: Callable[[bytes], None]) -> None:
        """Hand everything that comes through a pipe to `receive`; the pipe is closed in the end."""
        os.set_blocking(pipe.fileno(), False)
        self._pipes.append(pipe)
        self._selector.register(pipe, selectors.EVENT_READ, partial(self._read, pipe, receive))

    def listen(self, descriptor: int, react: Callable[[], bool]) -> None:
        """Call `react` whenever there is something to read from a descriptor, until it returns False."""
        self._selector.register(descriptor, selectors.EVENT_READ, react)

    def pump(self, seconds: float, until: Callable[[], bool]) -> None:
        """Read for so long, or until something has come true."""
        deadline = time.monotonic() + seconds
        while not until() and (left := deadline - time.monotonic()) > 0:
            self._react(left)

    def drain(self) -> None:
        """Read what is there without waiting for more."""
        while self._selector.get_map() and self._react(0.0):
            pass

    def _react(self, seconds: float) -> bool:
        ready = self._selector.select(seconds)
        for key, _ in ready:
            if not key.data():
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def _read(self, pipe: IO[bytes], receive: Callable[[bytes], None]) -> bool:
        data = os.read(pipe.fileno(), _CHUNK)
        self.bytes_read += len(data)
        if data:
            receive(data)
        return bool(data)
