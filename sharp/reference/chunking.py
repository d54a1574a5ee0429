"""Work on many samples in blocks, one thread a core, with progress."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, CancelledError, ThreadPoolExecutor, wait
from typing import TypeVar

from hpc.interrupts import CHECK_S, deferred_interrupts

Progress = Callable[[int, int, str], None]
Result = TypeVar("Result")


def map_blocks(
    work: Callable[[slice], Result], n: int, size: int, message: str, progress: Progress | None = None
) -> list[Result]:
    """Apply `work` to slices of at most `size` of n samples; return the results in order.

    `progress(done, total, message)` is called from this thread, with samples done and in total. After an
    interrupt or an error, blocks that have not begun are dropped.
    """
    blocks = [slice(start, min(start + size, n)) for start in range(0, n, size)]
    errors: list[BaseException] = []

    def attempt(block: slice) -> Result:
        if errors:
            raise CancelledError
        try:
            return work(block)
        except BaseException as error:
            errors.append(error)
            raise

    done = 0
    with deferred_interrupts() as check, ThreadPoolExecutor(_cores()) as pool:
        futures = {pool.submit(attempt, block): block for block in blocks}
        waiting = set(futures)
        try:
            while waiting:
                finished, waiting = wait(waiting, CHECK_S, FIRST_COMPLETED)
                check()
                if errors:
                    raise errors[0]
                for future in finished:
                    done += futures[future].stop - futures[future].start
                    if progress is not None:
                        progress(done, n, message)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return [future.result() for future in futures]


def _cores() -> int:
    """Count the cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
