"""Signals that wait while a thread holds locks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

CHECK_S = 0.1  # between two looks at what came


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Hold SIGINT and SIGTERM back; the yielded function raises what they would have raised, where it is called.

    Python runs a handler between any two instructions. Where the thread has just taken a lock of
    `concurrent.futures`, an exception leaves it locked for ever, and the worker threads wait for it. A signal
    that came last takes effect at the end. Only the main thread takes signals; elsewhere nothing is held back.
    """
    came: list[int] = []
    handlers = {
        number: handler
        for number in (signal.SIGINT, signal.SIGTERM)
        if callable(handler := signal.getsignal(number))
        and threading.current_thread() is threading.main_thread()
    }

    def check() -> None:
        while came:
            number = came.pop(0)
            handlers[number](number, None)  # type: ignore[index]

    for number in handlers:
        signal.signal(number, lambda number, _: came.append(number))
    try:
        yield check
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        check()
