"""The log of an experiment: one line an event, with a checksum (`hpc.journal.journal_file`), append-only.

The holder of the experiment's lease writes it; anyone may read it at any time. Every event carries the time at which it
was written, the epoch of the lease and the number of the log's form. Damaged and torn lines do not count: what they
held is done again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from hpc.errors import RunDirectoryError
from hpc.files import AppendFile, make_directory, truncate_partial_line
from hpc.journal import Lease, decode_event, encode_event

Event = dict[str, Any]
R = TypeVar("R")
FORMAT = 3
"""The form of the logs of sweeps and benchmarks."""


def read_log(path: Path) -> tuple[list[Event], tuple[str, ...]]:
    """Return the events of a log and a warning for each line that does not count; a missing log is empty.

    Raises `RunDirectoryError` for a log in another form.
    """
    try:
        *lines, tail = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], ()
    events = [decode_event(line) for line in lines]
    warnings = [
        f"{path}:{number}: damaged, and left out" for number, event in enumerate(events, 1) if event is None
    ]
    if tail:
        warnings.append(f"{path}: the last line is torn, and left out")
    sound = [event for event in events if event is not None]
    others = [form for event in sound if (form := event.get("format")) != FORMAT]
    if others:
        raise RunDirectoryError(
            f"{path} is a log in format {others[0] or 1}, and this version of pde-sharp reads format {FORMAT} alone; "
            "choose another directory"
        )
    return sound, tuple(warnings)


class ExperimentLog:
    """Appends events to a log while a lease holds; a context that closes the file."""

    def __init__(self, path: Path, lease: Lease) -> None:
        # A killed writer leaves a torn line: what is appended to it would be damaged too.
        truncate_partial_line(path)
        self._lease = lease
        self._file = AppendFile(path)

    def append(self, events: Iterable[Mapping[str, Any]]) -> list[Event]:
        """Write events in one piece and return them as written; raises `LeaseLost` once the lease is lost."""
        self._lease.renew()
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        stamp = {"time": now, "epoch": self._lease.epoch, "format": FORMAT}
        stamped = [{**event, **stamp} for event in events]
        self._file.append(b"".join(map(encode_event, stamped)))
        return stamped

    def close(self) -> None:
        """Close the file; the lease is the caller's."""
        self._file.close()


class RecordWriter(Generic[R]):
    """Holds the lease of a folder and appends to its log, a context; `record` is what the log held before.

    Raises `RunLocked` where another process has the lease.
    """

    def __init__(self, path: Path, read: Callable[[Path], R]) -> None:
        folder = path.parent
        make_directory(folder)
        self._lease = Lease.acquire(folder)
        # Before the log is opened for writing, which cuts off a torn line and with it the warning.
        self.record = read(folder)
        self._log = ExperimentLog(path, self._lease)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._log.close()
        self._lease.release()

    def beat(self) -> None:
        """Renew the lease; raises `LeaseLost` once another process has taken it over."""
        self._lease.renew()
