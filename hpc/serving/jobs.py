"""The server jobs of a campaign: submitted by the book, followed by how servers ended and by what Slurm says."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Collection

from hpc.errors import InfrastructureError
from hpc.serving.plan import ServerPlan, server_script
from hpc.serving.services import Ended, make_key, read_ended
from hpc.slurm.book import JobBook, Submission
from hpc.slurm.campaign import Campaign, read_wishes
from hpc.slurm.client import Slurm, Snapshot
from hpc.slurm.errors import SlurmError, SlurmFull, SlurmUnreachable
from hpc.slurm.parsing import Job
from hpc.slurm.polling import Poll
from hpc.slurm.script import Script
from hpc.slurm.states import FailureClass, JobState
from hpc.slurm.submission import PATIENCE_S, age_s

log = logging.getLogger(__name__)

FAILURES = 2
"""Jobs of a model that fail in a row before it is given up; the last is booked as `failed for good`."""

_FULL_PAUSE_S = 60.0
_LOOK_UP_S = 10.0
_SOON_S = 2.0
_LOG_LINES = 20
_COUNTED = ("failed", "cancelled")


class ServerFailed(InfrastructureError):
    """A model cannot be served; the message says why, with the end of the server's log."""


class ServerJobs:
    """Submits, follows and ends server jobs. Of one event loop; Slurm is asked in threads.

    `failures` says of models that were given up why. Slurm is asked at once about jobs that were not in question
    before, and otherwise every `ask_s` seconds or more rarely.
    """

    def __init__(
        self,
        campaign: Campaign,
        book: JobBook,
        slurm: Slurm,
        *,
        render: Callable[[Script], str],
        ask_s: float,
    ) -> None:
        self._campaign, self._book, self._slurm, self._render = campaign, book, slurm, render
        self._poll = Poll(slurm, first_s=ask_s, most_s=6 * ask_s)
        self._snapshot = Snapshot({})
        self._heard: dict[str, float] = {}
        self._ask_s = ask_s
        self._let_go: set[str] = set()
        self._ends_seen: set[str] = set()
        self._not_before = self._look_up_at = 0.0
        self.failures: dict[str, str] = {}

    def of(self, model: str) -> tuple[Submission, ...]:
        """Return the jobs of a model that are not over, as far as is known; those that were let go do not count."""
        return tuple(s for s in self.unfinished() if s.purpose == model and s.job_id not in self._let_go)

    def unfinished(self) -> tuple[Submission, ...]:
        """Return all server jobs that are not over, as far as is known."""
        return tuple(s for s in self._book.book.of_role("server") if s.ended is None)

    def is_over(self, job_id: str) -> bool:
        """Return whether a job is known to have ended."""
        return any(s.job_id == job_id and s.ended for s in self._book.book.of_role("server"))

    def in_words(self, model: str) -> str:
        """Say what a model's servers are waited for."""
        jobs = [self._job_in_words(submission) for submission in self.of(model)]
        return f"a server of {model}: {', '.join(jobs) or 'no job is asked for just now'}"

    async def follow(self, answering: Collection[str]) -> None:
        """Find out which jobs are over, except those in which a server answers, and book them."""
        await self._look_up()
        unsure = {
            s.job_id: s for s in self.unfinished() if s.job_id is not None and s.job_id not in answering
        }
        self._heard |= dict.fromkeys(answering, time.monotonic())
        if not unsure:
            return
        ends = {end.job: end for end in read_ended(self._campaign.services)}
        if {ends[job].worker for job in unsure.keys() & ends.keys()} - self._ends_seen:
            self._ask_soon()
        self._ends_seen |= {end.worker for end in ends.values()}
        self._snapshot = await asyncio.to_thread(self._poll.look, unsure.keys())
        for job_id, submission in unsure.items():
            self._decide(submission, job_id, ends.get(job_id))

    async def submit(self, plan: ServerPlan) -> None:
        """Submit a job for one replica; where Slurm refuses it for good, the model has failed."""
        if (
            time.monotonic() < self._not_before
            or plan.model in self.failures
            or read_wishes(self._campaign).stop
        ):
            return
        book = self._book
        token = self._campaign.next_token(book.book, "server")
        try:
            text = self._script(plan, token)
            book.intend(token, "server", gpus=plan.gpus, purpose=plan.model)
            job_id = await asyncio.to_thread(self._slurm.submit, text, token=token)
        except SlurmUnreachable as error:
            log.warning("%s The job is looked up by its token %s.", error, token)
        except SlurmFull as error:
            log.warning("%s", error)
            book.ended(token, "refused")
            self._not_before = time.monotonic() + _FULL_PAUSE_S
        except SlurmError as error:
            book.ended(token, "refused")
            self.failures[plan.model] = f"model {plan.model} cannot be served: {error}"
        else:
            book.submitted(token, job_id)

    async def let_go(self, answering: Collection[str], others: Collection[str]) -> None:
        """End jobs: those in which a server answers in good order, the others at once. Slurm may be away."""
        self._let_go |= {*answering, *others}
        self._ask_soon()
        try:
            if answering:
                argv = ["scancel", "--batch", "--signal=USR2", *answering]
                await asyncio.to_thread(self._slurm.commands.ask, argv)
            if others:
                await asyncio.to_thread(self._slurm.cancel, others)
        except SlurmError as error:
            log.warning("Jobs %s could not be ended: %s", ", ".join([*answering, *others]), error)

    def _ask_soon(self) -> None:
        """Ask Slurm at the next turn, and more often for a while: something is about to change."""
        soon_s = min(_SOON_S, self._ask_s)
        self._poll = Poll(self._slurm, first_s=soon_s, most_s=6 * self._ask_s)

    def _script(self, plan: ServerPlan, token: str) -> str:
        key = make_key(self._campaign.services.absolute())
        return self._render(
            server_script(self._campaign, plan, token, key_file=key, excluded=self._book.book.excluded)
        )

    async def _look_up(self) -> None:
        """Find out which submissions without an answer reached Slurm."""
        open_ones = [s for s in self.unfinished() if s.job_id is None]
        if not open_ones or time.monotonic() < self._look_up_at:
            return
        self._look_up_at = time.monotonic() + _LOOK_UP_S
        for submission in open_ones:
            try:
                found = await asyncio.to_thread(self._slurm.find_by_token, submission.token)
            except SlurmError as error:
                log.warning("%s", error)
                return
            if found:
                self._book.submitted(submission.token, found[0])
            elif age_s(submission.intended) > PATIENCE_S:
                self._book.ended(submission.token, "never reached Slurm")

    def _decide(self, submission: Submission, job_id: str, end: Ended | None) -> None:
        job = self._snapshot.jobs.get(job_id)
        if job is not None and job.state is not JobState.UNKNOWN:
            self._heard[job_id] = time.monotonic()
            if job.state.ended:
                self._close(submission, job, end)
        elif not self._snapshot.notes and (end is not None or self._silent_s(job_id) > PATIENCE_S):
            self._close(submission, None, end)

    def _silent_s(self, job_id: str) -> float:
        """Return for how long nothing has been heard of a job; Slurm's accounts may lag."""
        return time.monotonic() - self._heard.setdefault(job_id, time.monotonic())

    def _close(self, submission: Submission, job: Job | None, end: Ended | None) -> None:
        model, how = submission.purpose, self._how(submission, job, end)
        seconds = end.ended - end.began if end else float(job.elapsed_s) if job and job.elapsed_s else None
        if how in _COUNTED:
            before = [s.ended for s in self._book.book.of_role("server") if s.purpose == model and s.ended]
            if len(before) >= FAILURES - 1 and all(past in _COUNTED for past in before[1 - FAILURES :]):
                why = end.why if end and how == "failed" else self._why(submission, how)
                self.failures[model] = (
                    f"model {model} cannot be served: {FAILURES} jobs in a row failed. {why}"
                )
                how = "failed for good"
        self._book.ended(submission.token, how, seconds)

    def _how(self, submission: Submission, job: Job | None, end: Ended | None) -> str:
        """Return how a job ended: by word of its server, unless it was cancelled; without one, of Slurm."""
        failure = job.state.failure if job else None
        if submission.job_id in self._let_go:
            return "retired"
        if failure is FailureClass.CANCELLED:
            return "cancelled"
        if end is not None:
            return "failed" if end.failed else "retired"
        if failure in (None, FailureClass.PROGRAM, FailureClass.MEMORY):
            return "failed"
        return str(failure)

    def _why(self, submission: Submission, how: str) -> str:
        if how == "cancelled":
            return f"Somebody cancelled job {submission.job_id}."
        path = self._campaign.logs / f"{submission.job_id}.out"
        try:
            with path.open(errors="replace") as file:
                tail = "".join(deque(file, _LOG_LINES)).strip()
        except OSError:
            tail = "(no log)"
        return f"The last one was job {submission.job_id}; the end of {path}:\n{tail}"

    def _job_in_words(self, submission: Submission) -> str:
        if submission.job_id is None:
            return f"no answer from Slurm yet about {submission.token}"
        job = self._snapshot.jobs.get(submission.job_id)
        if job is None or job.state is JobState.UNKNOWN:
            return f"job {submission.job_id} is with Slurm"
        if job.state is JobState.RUNNING:
            return f"job {submission.job_id} starts one on {job.nodes}"
        return f"job {submission.job_id} is {job.state.lower()}{f' ({job.reason})' if job.reason else ''}"
