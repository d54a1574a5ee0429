"""Coroutines run to their end from synchronous code, in scripts as in notebooks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from typing import Any, TypeVar

from hpc.interrupts import CHECK_S, deferred_interrupts, run_interruptible

T = TypeVar("T")


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end and return its result, also if this thread runs an event loop (a notebook).

    An event loop cannot be entered twice, so there the coroutine gets a loop in a thread of its own while this one
    waits. An interrupt (Ctrl-C, SIGTERM, a notebook's stop button) cancels it and is raised once it has cleaned up.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_interruptible(work)
    return _in_thread(work)


def _in_thread(work: Coroutine[Any, Any, T]) -> T:
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def main() -> T:
        task = asyncio.current_task()
        assert task is not None
        begun.append((asyncio.get_running_loop(), task))
        return await work

    with deferred_interrupts() as check, ThreadPoolExecutor(1) as pool:
        future = pool.submit(copy_context().run, asyncio.run, main())
        try:
            while not future.done():
                wait([future], CHECK_S)
                check()
            return future.result()
        except KeyboardInterrupt:
            if begun and not future.done():
                loop, task = begun[0]
                loop.call_soon_threadsafe(task.cancel)
            raise
