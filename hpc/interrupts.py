"""Interrupts that get through and leave nothing half done: they wait for locks, and end an event loop in order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

CHECK_S = 0.1  # between two looks at what came


def insist_on_interrupts() -> None:
    """Have SIGTERM raise KeyboardInterrupt as Ctrl-C does, and have it raised again where it was dropped.

    What a handler raises within a destructor, the callback of a weak reference or one from C goes no further: Python
    prints it, and the program would go on as if nobody had told it to end.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    print_dropped = sys.unraisablehook

    def raise_again(dropped: sys.UnraisableHookArgs) -> None:
        if not issubclass(dropped.exc_type, KeyboardInterrupt):
            print_dropped(dropped)
            return
        # Raised here it would be dropped as well.
        again = threading.Timer(CHECK_S, os.kill, (os.getpid(), signal.SIGTERM))
        again.daemon = True
        again.start()

    sys.unraisablehook = raise_again


def run_interruptible(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in an event loop of its own; SIGTERM ends it as Ctrl-C does.

    Both cancel the coroutine and raise KeyboardInterrupt once it has cleaned up. A handler that raises by itself would
    do so in the midst of the loop, which may then wait for ever for a task that nothing wakes any more.
    """
    import asyncio

    told = False

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None

        def cancel() -> None:
            nonlocal told
            told = True
            task.cancel()

        with _on_sigterm(cancel):
            return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def _on_sigterm(act: Callable[[], None]) -> Iterator[None]:
    """Call a function in the running loop at SIGTERM, unless the program has a handler of its own for it."""
    before = signal.getsignal(signal.SIGTERM)
    # Only the main thread can take signals.
    free = threading.current_thread() is threading.main_thread()
    if not free or before not in (signal.SIG_DFL, signal.default_int_handler):
        yield
        return
    import asyncio

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGTERM)
        signal.signal(signal.SIGTERM, before)


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
