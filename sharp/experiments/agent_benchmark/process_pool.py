"""Items shared out among processes; a process that dies costs the item that it was at, and no more.

A worker has one thread for linear algebra, is ended with the process that started it, and leaves interruptions to it.
The standard library's `ProcessPoolExecutor` loses all items at work when one worker dies, and cannot end workers.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Generic, TypeVar

from pebble import ProcessExpired, ProcessPool

from hpc.processes import die_with_parent

Item = TypeVar("Item")
Found = TypeVar("Found")

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_HEARTBEAT_S = 15.0


@dataclass(frozen=True)
class WorkerDied(Generic[Item]):
    """The process that worked on an item ended; `exitcode` is negative for a signal."""

    item: Item
    exitcode: int


def map_unordered(
    batches: Iterable[Iterable[Item]],
    work: Callable[[Item], Found],
    jobs: int,
    beat: Callable[[], None] = lambda: None,
) -> Iterator[Found | WorkerDied[Item]]:
    """Yield what `work` makes of all items, as it comes; those of a batch follow one another.

    `work`, items and what it returns can be pickled. `beat` is called at least every 15 s. Raises what `work` raises.
    """
    waiting = deque(map(iter, batches))
    running: dict[Future[Found], tuple[Item, Iterator[Item]]] = {}
    with workers(jobs) as pool:
        while waiting or running:
            while waiting and len(running) < jobs:
                batch = waiting.popleft()
                for item in batch:
                    running[pool.schedule(work, args=(item,))] = item, batch
                    break
            done, _ = wait(running, _HEARTBEAT_S, FIRST_COMPLETED)
            beat()
            for future in done:
                item, batch = running.pop(future)
                waiting.appendleft(batch)
                try:
                    yield future.result()
                except ProcessExpired as error:
                    yield WorkerDied(item, error.exitcode)


@contextmanager
def workers(jobs: int) -> Iterator[ProcessPool]:
    """Processes with one thread each, ended at once at the end: more threads than cores are in each other's way."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    pool = ProcessPool(jobs, initializer=die_with_parent, context=get_context("spawn"))
    try:
        yield pool
    finally:
        pool.stop()  # type: ignore[no-untyped-call]
        pool.join()
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
