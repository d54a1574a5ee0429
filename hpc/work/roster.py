"""What elements say of themselves, on shared storage: that they are there, that they still are, that they left.

QUEUE/elements/<worker>    one small file for each element of an open submission, written anew with every beat

A worker's name is that of its job in Slurm and how often that was started again, `17_3.0`. Slurm may be away, late
or wrong about a job; these files are not asked of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from hpc.files import make_directory
from hpc.work.queue import put


@dataclass(frozen=True)
class Sign:
    """An element's last word: since when it is there and when it said so (POSIX seconds by its node's clock).

    `done` counts the entries that it has done; `left` says that it has gone in good order, `told` that it was told to.
    """

    worker: str
    node: str
    began: float
    seen: float
    done: int = 0
    left: bool = False
    told: bool = False

    @property
    def job(self) -> str:
        """The job's id as Slurm shows it."""
        return job_of(self.worker)

    @property
    def seconds(self) -> float:
        """How long it has been there, as far as is known."""
        return max(self.seen - self.began, 0.0)


def job_of(worker: str) -> str:
    """Return the id, as Slurm shows it, of the job that a worker is."""
    return worker.rpartition(".")[0]


class Roster:
    """The signs of a queue's elements."""

    def __init__(self, queue: Path) -> None:
        self._folder = queue / "elements"
        make_directory(self._folder)

    def write(self, sign: Sign) -> None:
        """Put an element's sign there or replace it; raises `StorageFull` or `RunDirectoryError`."""
        content = {name: value for name, value in asdict(sign).items() if name != "worker"}
        put(self._folder / sign.worker, content)

    def signs(self) -> tuple[Sign, ...]:
        """Return all signs that can be read."""
        return tuple(self._read())

    def remove(self, workers: Iterable[str]) -> None:
        """Remove the signs of elements that nobody asks about any more."""
        for worker in workers:
            (self._folder / worker).unlink(missing_ok=True)

    def _read(self) -> Iterator[Sign]:
        for path in sorted(self._folder.glob("[!.]*")):
            with suppress(OSError, ValueError, TypeError):
                yield Sign(worker=path.name, **json.loads(path.read_bytes()))
