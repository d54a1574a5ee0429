"""Watching a campaign's elements: asking Slurm rarely, reading the roster often, closing arrays that are over."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

from hpc.slurm.book import JobBook, Submission
from hpc.slurm.client import Slurm, Snapshot
from hpc.slurm.errors import SlurmError
from hpc.slurm.polling import Poll
from hpc.slurm.states import FailureClass, JobState
from hpc.slurm.submission import age_s
from hpc.work.arrays import Arrays
from hpc.work.desk import LOST
from hpc.work.fleet import Element, Patience, ending, is_final, jobs_of, judge
from hpc.work.roster import Roster, Sign, job_of

_BEATS = 3
_WORTH_READING = (FailureClass.PROGRAM, FailureClass.MEMORY, FailureClass.NODE, FailureClass.WALLTIME)


class Watch:
    """Knows the elements of all arrays that the book calls open, and writes there which are over.

    `elements` is what was found last. `asked` says whether Slurm has been asked since the beginning.
    """

    def __init__(self, book: JobBook, slurm: Slurm, arrays: Arrays, patience: Patience) -> None:
        self.elements: tuple[Element, ...] = ()
        self.asked = False
        self._book, self._slurm, self._arrays, self._patience = book, slurm, arrays, patience
        self._roster = Roster(arrays.campaign.queue)
        self._poll = Poll(slurm, first_s=patience.ask_s, most_s=patience.ask_most_s)
        self._snapshot = Snapshot({})
        self._asked_for: frozenset[str] = frozenset()
        self._signs: dict[str, Sign] = {}
        self._missed: frozenset[str] = frozenset()
        self._beats: dict[str, tuple[float, float, bool]] = {}
        self._known: dict[str, float] = {}
        self._gone: dict[str, float] = {}
        self._quiet: set[str] = set()
        self._cancelled: set[str] = set()
        self._next_look_up = 0.0

    @property
    def open(self) -> tuple[Submission, ...]:
        """The arrays that are not over, as far as the book knows."""
        return tuple(s for s in self._book.book.of_role("evaluate") if s.ended is None)

    async def ask(self) -> None:
        """Ask Slurm, if it is time to, for what is not known of arrays."""
        ids = [submission.job_id for submission in self.open if submission.job_id is not None]
        self._snapshot = await asyncio.to_thread(self._poll.look, ids)
        self._asked_for = frozenset(ids)
        self.asked = True

    async def look_up(self, *, at_once: bool = False) -> None:
        """Find out which arrays reached Slurm although no answer came; now and then, or at once."""
        unanswered = [submission for submission in self.open if submission.job_id is None]
        if unanswered and (at_once or time.monotonic() >= self._next_look_up):
            for submission in unanswered:
                await self._look_up(submission)
            self._next_look_up = time.monotonic() + self._patience.ask_s

    def look(self, now: float) -> list[Element]:
        """Judge all elements anew at a moment of the monotonic clock; return those that are newly gone."""
        self._read_roster()
        self._known |= dict.fromkeys(self._snapshot.jobs, now)
        self.elements = tuple(element for array in self.open for element in self._elements(array, now))
        gone = {element.job: element for element in self.elements if element.phase == "gone"}
        newly = [element for job, element in gone.items() if job not in self._gone]
        self._gone = {job: self._gone.get(job, now) for job in gone}
        quiet = {element.job for element in self.elements if self._is_quiet(element, now)}
        if quiet - self._quiet or not all(element.state.ended for element in newly):
            self._poll.hurry()
        self._quiet = quiet
        return newly

    def cancelled(self) -> list[str]:
        """Return the jobs of which Slurm says for the first time that somebody cancelled them."""
        found = {e.job for e in self.elements if e.state.failure is FailureClass.CANCELLED}
        newly, self._cancelled = found - self._cancelled, found
        return sorted(newly)

    def is_puzzled(self, now: float) -> bool:
        """Whether elements were told to go, and it is not known yet why: by their time, or by a person."""
        gone_s = {job: now - since for job, since in self._gone.items()}
        return any(e.puzzling and gone_s.get(e.job, 0.0) < self._patience.grace_s for e in self.elements)

    def fate(self, worker: str) -> str | None:
        """Return the class of what has become of a worker that is dead; None while it may be alive."""
        job = job_of(worker)
        sign = self._signs.get(job)
        element = next((element for element in self.elements if element.job == job), None)
        if element is None:  # of an array that is over, or of one that nobody knows the id of yet
            silent = sign is None or self._silence(sign, time.monotonic()) > self._patience.silent_s
            return LOST if silent else None
        if element.phase == "gone":
            return element.failure or LOST
        started_again = sign is not None and (sign.worker != worker or element.phase == "coming")
        return FailureClass.PREEMPTED if started_again else None

    def close(self, now: float) -> list[tuple[Submission, list[Element]]]:
        """Write down which arrays are over, remove their files, and return them with their elements."""
        return [(array, found) for array in self.open if (found := self._over(array, now))]

    def log(self, job: str) -> Path:
        """Return the file of what an element prints; for one of no open array, the folder of all logs."""
        tokens = [element.token for element in self.elements if element.job == job]
        return self._arrays.log(tokens[0], job) if tokens else self._arrays.campaign.logs

    def proven_elsewhere(self, node: str) -> bool:
        """Whether elements on other nodes have done work."""
        return any(sign.done > 0 and sign.node != node for sign in self._signs.values())

    async def bury(self, limit_s: float) -> None:
        """Wait for the end of arrays that have been cancelled, and write down what they used.

        What has not ended in time, or is not known to have, stays open.
        """
        deadline = time.monotonic() + limit_s
        while ids := [array.job_id for array in self.open if array.job_id is not None]:
            self._snapshot = await asyncio.to_thread(self._slurm.snapshot, ids)
            self.look(time.monotonic())
            for array in self.open:
                elements = [element for element in self.elements if element.token == array.token]
                if array.job_id is not None and all(map(self._has_ended, elements)):
                    self.end(array, elements, "withdrawn")
            if time.monotonic() > deadline:
                return
            await asyncio.sleep(self._patience.steer_s)

    def end(self, submission: Submission, elements: list[Element], how: str | None = None) -> None:
        """Write down that an array is over and remove its files, but for the logs of what failed."""
        states, seconds = ending(elements)
        self._book.ended(submission.token, how or states, seconds)
        failed = [element.job for element in elements if element.failure in _WORTH_READING]
        self._arrays.clear(submission, failed)
        jobs = {element.job for element in elements}
        self._roster.remove(sign.worker for sign in self._roster.signs() if sign.job in jobs)

    def _read_roster(self) -> None:
        """Take the newest sign of each job; a listing may miss one that is just being replaced, but not twice."""
        read = _newest(self._roster.signs())
        missed = {job: sign for job, sign in self._signs.items() if job not in read}
        self._signs = {job: sign for job, sign in missed.items() if job not in self._missed} | read
        self._missed = frozenset(missed)

    def _has_ended(self, element: Element) -> bool:
        unknown = element.state is JobState.UNKNOWN and not self._snapshot.notes
        return element.state.ended or unknown

    def _over(self, submission: Submission, now: float) -> list[Element]:
        """Return the elements of an array if they are gone and no more can be learnt of them, and close it."""
        elements = [element for element in self.elements if element.token == submission.token]
        final = (is_final(e, now - self._gone.get(e.job, now), self._patience) for e in elements)
        if not elements or not all(final):
            return []
        self.end(submission, elements)
        return elements

    def _elements(self, array: Submission, now: float) -> Iterator[Element]:
        age = age_s(array.submitted or array.intended)
        if array.job_id is None:
            yield from (Element(array.token, "", "coming") for _ in range(array.elements))
        for job in jobs_of(array):
            sign = self._signs.get(job)
            yield judge(
                array.token,
                job,
                self._snapshot.jobs.get(job),
                sign,
                answered=array.job_id in self._asked_for and not self._snapshot.notes,
                silent_s=0.0 if sign is None else self._silence(sign, now),
                unknown_s=now - self._known[job] if job in self._known else age,
                age_s=age,
                patience=self._patience,
            )

    def _silence(self, sign: Sign, now: float) -> float:
        """Return for how long an element has shown no sign of life.

        A beat that was seen to change is timed by our own clock; for the first that is seen, clocks are compared.
        """
        seen, since, beats = self._beats.get(sign.worker, (sign.seen, now, False))
        if seen != sign.seen:
            since, beats = now, True
        self._beats[sign.worker] = (sign.seen, since, beats)
        return now - since if beats else max(now - since, time.time() - sign.seen)

    def _is_quiet(self, element: Element, now: float) -> bool:
        if element.phase != "here" or element.sign is None:
            return False
        return self._silence(element.sign, now) > _BEATS * self._patience.beat_s

    async def _look_up(self, submission: Submission) -> None:
        try:
            found = await asyncio.to_thread(self._slurm.find_by_token, submission.token)
        except SlurmError:  # it cannot be known now
            return
        if found:
            self._book.submitted(submission.token, found[0])
            self._arrays.put_in_place(self._book.book.submissions[submission.token])
        elif (
            age_s(submission.intended) > self._patience.arrival_s
        ):  # if it comes after all, it has nothing to do
            self._book.ended(submission.token, "never reached Slurm")
            self._arrays.clear(submission, ())


def _newest(signs: tuple[Sign, ...]) -> dict[str, Sign]:
    """Return the newest sign of each job: Slurm may have started it again."""
    return {sign.job: sign for sign in sorted(signs, key=lambda sign: sign.began)}
