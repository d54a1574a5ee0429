"""The book of a campaign's jobs: what was asked of Slurm, written before it is asked.

One line an event (`hpc.log`), appended by whoever steers the campaign, readable by anyone at any time. An `intent`
is on disk before `sbatch` is called, with a token that the job carries: whatever happens to the answer, or to the one
who asked, the job can be found again by it and is neither lost nor submitted twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

from hpc.files import AppendFile, cut_torn_tail
from hpc.log import decode_event, encode_event
from hpc.slurm.profile import RoleName


@dataclass(frozen=True)
class Submission:
    """One call of sbatch: a job, or an array of `elements` with `gpus` each.

    `purpose` says what it is for (a model card's name, say); `intended`, `submitted` and `closed` are ISO 8601
    (UTC). `job_id` None: it is not known whether it reached Slurm. `ended` says how it ended once all of it has;
    `seconds` is the time that its elements ran, together, None where nobody knows.
    """

    token: str
    role: RoleName
    elements: int
    gpus: int
    purpose: str
    intended: str
    job_id: str | None = None
    submitted: str | None = None
    ended: str | None = None
    closed: str | None = None
    seconds: float | None = None

    @property
    def gpu_hours(self) -> float | None:
        """GPU-hours that it held; None while it runs or where nobody knows."""
        return None if self.seconds is None else self.seconds * self.gpus / 3600


@dataclass(frozen=True)
class Book:
    """What a book says: submissions by token, in order; nodes that are avoided, and why."""

    submissions: Mapping[str, Submission] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)

    @property
    def unanswered(self) -> tuple[Submission, ...]:
        """Those of which it is not known whether they reached Slurm."""
        return tuple(s for s in self.submissions.values() if s.job_id is None and s.ended is None)

    @property
    def open(self) -> tuple[Submission, ...]:
        """Those that are with Slurm and have not ended, as far as is known."""
        return tuple(s for s in self.submissions.values() if s.job_id is not None and s.ended is None)

    def of_role(self, role: RoleName) -> tuple[Submission, ...]:
        """All submissions of a role."""
        return tuple(s for s in self.submissions.values() if s.role == role)


class JobBook:
    """The writer of a book; one at a time: `beat` is called before each line and raises where that is another."""

    def __init__(self, path: Path, beat: Callable[[], None] = lambda: None) -> None:
        self.book = read_book(path)
        self._beat = beat
        cut_torn_tail(path)
        self._file = AppendFile(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file."""
        self._file.close()

    def intend(
        self, token: str, role: RoleName, *, elements: int = 1, gpus: int = 0, purpose: str = ""
    ) -> None:
        """Say what is about to be submitted."""
        self._write("intent", token=token, role=role, elements=elements, gpus=gpus, purpose=purpose)

    def submitted(self, token: str, job_id: str) -> None:
        """Say that Slurm has it."""
        self._write("submitted", token=token, job_id=job_id)

    def ended(self, token: str, how: str, seconds: float | None = None) -> None:
        """Say that all of it is over (a state, or why it never reached Slurm), and how long it ran."""
        self._write("ended", token=token, how=how, seconds=seconds)

    def exclude(self, node: str, reason: str) -> None:
        """Say that a node is to be avoided."""
        self._write("excluded", node=node, reason=reason)

    def _write(self, event: str, **fields: Any) -> None:
        line = {"event": event, "time": datetime.now(UTC).isoformat(timespec="seconds"), **fields}
        self._beat()
        self._file.append(encode_event(line))
        self.book = _with_event(self.book, line)


def read_book(path: Path) -> Book:
    """Read a book; a missing one is empty, a torn last line does not count."""
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return Book()
    return book_of(event for line in lines if (event := decode_event(line)) is not None)


def book_of(events: Iterable[Mapping[str, Any]]) -> Book:
    """Return what events say together."""
    book = Book()
    for event in events:
        book = _with_event(book, event)
    return book


def _with_event(book: Book, event: Mapping[str, Any]) -> Book:
    if event["event"] == "excluded":
        return replace(book, excluded={**book.excluded, event["node"]: event["reason"]})
    known = book.submissions.get(event["token"])
    if event["event"] == "intent":
        fields = {name: event[name] for name in ("token", "role", "elements", "gpus", "purpose")}
        now: Submission | None = Submission(intended=event["time"], **fields)
    elif known is not None and event["event"] == "submitted":
        now = replace(known, job_id=event["job_id"], submitted=event["time"])
    elif known is not None and event["event"] == "ended":
        now = replace(known, ended=event["how"], closed=event["time"], seconds=event["seconds"])
    else:
        now = None
    return book if now is None else replace(book, submissions={**book.submissions, now.token: now})
