"""Processes that take one piece of work each at a time; one that dies costs no more than what it was at.

A worker is a process of its own with one thread for linear algebra, is ended with whoever started it, and leaves
interruptions to them.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Generic, TypeVar

from hpc.processes import die_with_parent

Piece = TypeVar("Piece")
Found = TypeVar("Found")
Work = Callable[[Piece], Iterable[Found]]

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_HEARTBEAT_S = 15.0


@dataclass(frozen=True)
class Died(Generic[Piece]):
    """A worker ended while at a piece, after `found` results of it."""

    piece: Piece
    found: int
    exitcode: int | None


@dataclass
class _Worker(Generic[Piece]):
    process: SpawnProcess
    connection: Connection
    piece: Piece
    found: int = 0


def shared_out(
    pieces: Sequence[Piece], work: Work[Piece, Found], jobs: int, beat: Callable[[], None] = lambda: None
) -> Iterator[Found | Died[Piece]]:
    """Yield what comes of all pieces, as it comes; `work` and pieces can be pickled.

    A worker that dies yields `Died`, and is replaced. `beat` is called again and again while nothing comes.
    """
    waiting = deque(pieces)
    with ExitStack() as stack, _one_thread():
        workers: list[_Worker[Piece]] = []
        stack.callback(lambda: _end(workers))
        while waiting or workers:
            while waiting and len(workers) < jobs:
                workers.append(_started(work, waiting.popleft()))
            ready = wait([worker.connection for worker in workers], timeout=_HEARTBEAT_S)
            beat()
            for worker in [worker for worker in workers if worker.connection in ready]:
                message = _received(worker)
                if message is _DONE and waiting:
                    worker.piece, worker.found = waiting.popleft(), 0
                    worker.connection.send(worker.piece)
                elif message is _DONE or isinstance(message, Died):
                    workers.remove(worker)
                    _end([worker])
                if message is not _DONE:
                    yield message


_DONE = object()


def _started(work: Work[Piece, Found], piece: Piece) -> _Worker[Piece]:
    context = get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_serve, args=(there, work), daemon=True)
    process.start()
    there.close()
    here.send(piece)
    return _Worker(process, here, piece)


def _received(worker: _Worker[Piece]) -> Any:
    """Return the next result, `_DONE` after the last of a piece, or `Died`."""
    try:
        kind, value = worker.connection.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        return Died(worker.piece, worker.found, worker.process.exitcode)
    worker.found += kind == "found"
    return value if kind == "found" else _DONE


def _end(workers: Iterable[_Worker[Piece]]) -> None:
    for worker in workers:
        worker.connection.close()
        worker.process.terminate()
        worker.process.join()


def _serve(connection: Connection, work: Work[Piece, Found]) -> None:
    """Work on pieces until nobody sends any more."""
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        try:
            piece = connection.recv()
        except EOFError:
            return
        for found in work(piece):
            connection.send(("found", found))
        connection.send(("done", None))


@contextmanager
def _one_thread() -> Iterator[None]:
    """Have processes that are started meanwhile use one thread each: more than cores are in each other's way."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
