"""Interrupts that get through and leave nothing half done: they wait for locks, and end an event loop in order."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

T = TypeVar("T")

CHECK_S = 0.1  # between two looks at what came
_LOADING = "<frozen importlib._bootstrap>"  # the file of the code that loads modules


def insist_on_interrupts() -> None:
    """Have SIGTERM raise KeyboardInterrupt as Ctrl-C does, both after modules are loaded, and until it gets through.

    Libraries in C may crash where loading them is cut short. What a handler raises within a destructor, the callback of
    a weak reference or one from C goes no further: Python prints it, and the program would go on as if nobody had told
    it to end.
    """
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, _interrupt)
    print_dropped = sys.unraisablehook

    def raise_again(dropped: sys.UnraisableHookArgs) -> None:
        if issubclass(dropped.exc_type, KeyboardInterrupt):
            _interrupt_soon()  # raised here it would be dropped as well
        else:
            print_dropped(dropped)

    sys.unraisablehook = raise_again


def _interrupt(_number: int, frame: FrameType | None) -> None:
    while frame is not None:
        if frame.f_code.co_filename == _LOADING:
            _interrupt_soon()
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _interrupt_soon() -> None:
    again = threading.Timer(CHECK_S, os.kill, (os.getpid(), signal.SIGTERM))
    again.daemon = True
    again.start()


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

        with _on_signal(signal.SIGINT, cancel), _on_signal(signal.SIGTERM, cancel):
            return await work

    try:
        return asyncio.run(main())
    except asyncio.CancelledError:
        if told:
            raise KeyboardInterrupt from None
        raise


@contextmanager
def _on_signal(number: int, act: Callable[[], None]) -> Iterator[None]:
    """Call a function in the running loop at a signal, unless it has a handler of its own already."""
    before = signal.getsignal(number)
    # Only the main thread can take signals.
    free = threading.current_thread() is threading.main_thread()
    if not free or before not in (signal.SIG_DFL, signal.default_int_handler, _interrupt):
        yield
        return
    import asyncio

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(number, act)
    try:
        yield
    finally:
        loop.remove_signal_handler(number)
        signal.signal(number, before)


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
