"""Where a campaign stands: its folder read, and joined with one look at Slurm. Nothing is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from hpc.control.usage import states_of, usage_now
from hpc.lease import Holder, read_holder
from hpc.serving.services import Service, read_services
from hpc.slurm.book import Book, Submission, read_book
from hpc.slurm.campaign import Campaign, read_wishes
from hpc.slurm.client import Slurm, Snapshot
from hpc.slurm.commands import Commands
from hpc.slurm.ending import Ending, read_ending
from hpc.slurm.parsing import Job
from hpc.slurm.states import JobState
from hpc.work.queue import Queue
from hpc.work.roster import Roster, job_of

PATIENCE_S = 3.0
"""Seconds that a person waits for an answer of Slurm's."""
UNASKED = Snapshot({}, ("Slurm was not asked.",))


@dataclass(frozen=True)
class Link:
    """One controller job: the `number`-th of the campaign; `state` None where Slurm says nothing of it."""

    number: int
    job: str
    state: str | None
    node: str
    reason: str


@dataclass(frozen=True)
class RoleCount:
    """Jobs of one role, by state those that have not ended, by how they ended the others."""

    role: str
    now: Mapping[str, int]
    ended: Mapping[str, int]


@dataclass(frozen=True)
class Server:
    """A language-model server that answers; `ends` is ISO 8601 (UTC), the end of its job's time."""

    model: str
    url: str
    job: str
    node: str
    ends: str


@dataclass(frozen=True)
class Work:
    """The queue: entries that nobody has taken, and how many each job has taken, with the node where it runs."""

    waiting: int
    taken: Mapping[str, int]
    nodes: Mapping[str, str]


@dataclass(frozen=True)
class Overview:
    """A campaign at a glance.

    `holder` is who has the right to steer just now. `unanswered` counts submissions of which it is not known whether
    they reached Slurm, `unmetered` ended jobs of which nobody knows how long they held GPUs. `stop` and `throttle` are
    what people have asked, `ending` is how it ended, None while it has not, `notes` what Slurm did not answer.
    """

    id: str
    cluster: str
    launched: str
    holder: Holder | None
    controller: Link | None
    successor: Link | None
    roles: tuple[RoleCount, ...]
    unanswered: int
    work: Work
    servers: tuple[Server, ...]
    gpu_hours: float
    jobs: int
    unmetered: int
    avoided: Mapping[str, str]
    stop: bool
    throttle: int | None
    ending: Ending | None
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @property
    def minutes(self) -> float:
        """Minutes since the launch."""
        return (datetime.now(UTC) - datetime.fromisoformat(self.launched)).total_seconds() / 60

    @property
    def at_work(self) -> bool:
        """Whether jobs run or wait, as far as anybody knows, or somebody steers by hand."""
        states = {JobState(state) for role in self.roles for state in role.now}
        doubted = bool(self.notes) and JobState.UNKNOWN in states
        return (
            self.holder is not None
            or doubted
            or any(state != JobState.UNKNOWN and not state.ended for state in states)
        )


def quick_slurm(campaign: Campaign) -> Slurm:
    """Return a client that asks each question once and does not wait long for the answer."""
    return Slurm(Commands(question_s=PATIENCE_S, pauses_s=()), source=campaign.cluster.status)


def open_jobs(book: Book) -> tuple[str, ...]:
    """Return the ids of jobs and arrays that have not ended, as far as the book knows."""
    return tuple(s.job_id for s in book.open if s.job_id is not None)


def overview(campaign: Campaign, book: Book, snapshot: Snapshot) -> Overview:
    """Return where a campaign stands, by its folder, its book, and what Slurm said of the `open_jobs`."""
    usage, wishes = usage_now(book, snapshot), read_wishes(campaign)
    controller, successor = _chain(book, snapshot)
    return Overview(
        id=campaign.id,
        cluster=campaign.cluster.name,
        launched=campaign.created,
        holder=read_holder(campaign.place),
        controller=controller,
        successor=successor,
        roles=_roles(book, snapshot),
        unanswered=len(book.unanswered),
        work=_work(campaign, snapshot),
        servers=tuple(map(_server, read_services(campaign.services))),
        gpu_hours=usage.gpu_hours,
        jobs=usage.jobs,
        unmetered=usage.unmetered,
        avoided=book.excluded,
        stop=wishes.stop,
        throttle=wishes.throttle,
        ending=read_ending(campaign),
        notes=snapshot.notes,
    )


def look(campaign: Campaign, slurm: Slurm | None) -> Overview:
    """Return where a campaign stands now; with Slurm None, or where all jobs have ended, it is not asked."""
    book = read_book(campaign.book)
    ids = open_jobs(book)
    if slurm is None:
        return overview(campaign, book, UNASKED)
    return overview(campaign, book, slurm.snapshot(ids) if ids else Snapshot({}))


def _chain(book: Book, snapshot: Snapshot) -> tuple[Link | None, Link | None]:
    """Return the link that steers and the one that waits to follow it; without Slurm's answer, the first two."""
    links = [
        _link(number, submission, snapshot.jobs.get(submission.job_id or ""))
        for number, submission in enumerate(book.of_role("controller"), 1)
        if submission in book.open
    ]
    if not snapshot.notes:
        links = [link for link in links if snapshot.jobs.get(link.job) and not snapshot.state(link.job).ended]
    waiting = [link for link in links if snapshot.state(link.job).waits]
    steering = [link for link in links if link not in waiting]
    return next(iter(steering), None), next(iter([*waiting, *steering[1:]]), None)


def _link(number: int, submission: Submission, job: Job | None) -> Link:
    known = submission.job_id or ""
    return Link(number, known, job.state, job.nodes, job.reason) if job else Link(number, known, None, "", "")


def _roles(book: Book, snapshot: Snapshot) -> tuple[RoleCount, ...]:
    roles = dict.fromkeys(submission.role for submission in book.submissions.values())
    return tuple(
        _role(role, [s for s in book.submissions.values() if s.role == role], snapshot) for role in roles
    )


def _role(role: str, submissions: list[Submission], snapshot: Snapshot) -> RoleCount:
    now, ended = Counter[str](), Counter[str]()
    for submission in submissions:
        if submission.ended is not None:
            ended[submission.ended] += submission.elements
        elif submission.job_id is not None:
            now.update({str(state): count for state, count in states_of(submission, snapshot).items()})
    return RoleCount(role, dict(now), dict(ended))


def _work(campaign: Campaign, snapshot: Snapshot) -> Work:
    folder = campaign.queue
    if not all((folder / name).is_dir() for name in ("waiting", "claimed", "failed", "elements")):
        return Work(0, {}, {})  # opening a queue would make its folders
    queue, roster = Queue(folder), Roster(folder)
    taken = Counter(job_of(ticket.worker) for ticket in queue.claims())
    told = {name: job.nodes for name, job in snapshot.jobs.items() if job.nodes}
    nodes = told | {sign.job: sign.node for sign in roster.signs()}
    return Work(len(queue.waiting()), dict(taken), {job: nodes[job] for job in taken if job in nodes})


def _server(service: Service) -> Server:
    ends = datetime.fromtimestamp(service.ends, UTC).isoformat(timespec="seconds")
    return Server(service.model, service.url, service.job, service.node, ends)
