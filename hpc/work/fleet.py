"""What has become of elements, by what Slurm says, what they say themselves, and for how long they have been silent.

Pure functions: nothing here asks, waits or writes.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from hpc.slurm.book import Submission
from hpc.slurm.parsing import Job
from hpc.slurm.states import FailureClass, JobState
from hpc.work.roster import Sign


@dataclass(frozen=True)
class Patience:
    """How long is waited for what, in seconds.

    Files are looked at every `tick_s`, elements every `steer_s`, Slurm every `ask_s` up to `ask_most_s`. Entries are
    collected for `collect_s` before elements are asked for. Elements beat every `beat_s`. Whom Slurm calls gone is
    believed to be after `grace_s` without a beat, and whom it calls running after `silent_s`. An array that Slurm does
    not know, though it answers, is lost after `unknown_s`, for files and accounts may be behind; one of which no answer
    came has not arrived after `arrival_s`. Where a limit on jobs is reached, the next try is after `full_s`. What a
    machine could not do is tried again after `pause_s`, then twice that, and so on. Losses on a node count as one
    unless they are `apart_s` apart.
    """

    tick_s: float = 0.1
    collect_s: float = 0.1
    steer_s: float = 1.0
    ask_s: float = 10.0
    ask_most_s: float = 180.0
    beat_s: float = 10.0
    grace_s: float = 30.0
    silent_s: float = 600.0
    unknown_s: float = 120.0
    arrival_s: float = 60.0
    full_s: float = 60.0
    pause_s: float = 2.0
    apart_s: float = 120.0


@dataclass(frozen=True)
class Element:
    """One element of an array: still to come, here (it has signed the roster), or gone.

    `state` is Slurm's word, UNKNOWN where it has none; `sign` is the element's own. `job` is empty while it is not
    known whether Slurm has the array.
    """

    token: str
    job: str
    phase: Literal["coming", "here", "gone"]
    state: JobState = JobState.UNKNOWN
    sign: Sign | None = None
    node: str = ""
    elapsed_s: float | None = None

    @property
    def left(self) -> bool:
        """Whether it went in good order."""
        return self.sign is not None and self.sign.left

    @property
    def puzzling(self) -> bool:
        """Whether it was told to go, and Slurm has not said yet why."""
        return self.sign is not None and self.sign.told and not self.state.ended

    @property
    def failure(self) -> FailureClass | None:
        """Why it is gone; None while it is not, where it left in good order, and where nobody knows."""
        return None if self.phase != "gone" or self.left else self.state.failure

    @property
    def seconds(self) -> float | None:
        """How long it ran: as Slurm counts it, else as it said itself; None where nobody knows."""
        if self.state.ended and self.elapsed_s is not None:
            return self.elapsed_s
        return None if self.sign is None else self.sign.seconds


def jobs_of(submission: Submission) -> list[str]:
    """Return the ids of the elements of an array, as Slurm shows them; none while the array's is not known."""
    if submission.job_id is None:
        return []
    return [f"{submission.job_id}_{number}" for number in range(submission.elements)]


def judge(
    token: str,
    job_id: str,
    job: Job | None,
    sign: Sign | None,
    *,
    answered: bool,
    silent_s: float,
    unknown_s: float,
    age_s: float,
    patience: Patience,
) -> Element:
    """Return what has become of an element.

    `job` is Slurm's word, None where it does not know it; `answered` says whether it answered at all. `silent_s` is
    the time since the element's last sign of life, `unknown_s` that since Slurm last knew it, `age_s` that since it
    was submitted.
    """
    state = JobState.UNKNOWN if job is None else job.state
    if sign is None:
        lost = state is JobState.UNKNOWN and unknown_s > (
            patience.unknown_s if answered else patience.silent_s
        )
        ended = state.ended and age_s > patience.grace_s
        phase: Literal["coming", "here", "gone"] = "gone" if ended or lost else "coming"
    elif sign.left:
        phase = "gone"
    elif not is_silent(state, silent_s, answered=answered, patience=patience):
        phase = "here"
    else:
        phase = "coming" if state.waits else "gone"
    node = sign.node if sign is not None else "" if job is None else job.nodes
    return Element(token, job_id, phase, state, sign, node, None if job is None else job.elapsed_s)


def is_silent(state: JobState, silent_s: float, *, answered: bool, patience: Patience) -> bool:
    """Whether an element has been silent for so long that it is dead, by what Slurm says of it."""
    doubted = state.ended or state.waits or (state is JobState.UNKNOWN and answered)
    return silent_s > (patience.grace_s if doubted else patience.silent_s)


def is_final(element: Element, gone_s: float, patience: Patience) -> bool:
    """Whether no more can be learnt of an element that has been gone for so long."""
    return element.phase == "gone" and (element.state.ended or gone_s > patience.grace_s)


def ending(elements: Sequence[Element]) -> tuple[str, float | None]:
    """Return how an array ended, and the seconds that its elements ran, together; None where nobody knows any."""
    states = {
        "COMPLETED" if element.left and not element.state.ended else str(element.state)
        for element in elements
    }
    known = [element.seconds for element in elements if element.seconds is not None]
    return ", ".join(sorted(states)), sum(known) if known else None


def spare(elements: Iterable[Element], busy: Collection[str], pack: int) -> int:
    """Return how many entries elements are expected to take besides those that the busy ones have."""
    return sum(pack - (element.job in busy) for element in elements if element.phase != "gone")


def wanted(waiting: int, expected: int, pack: int, room: int) -> int:
    """Return how many elements to ask for, where so many entries wait and as many as expected will be taken anyway."""
    return max(0, min(math.ceil((waiting - expected) / pack), room))


def chunks(elements: int, largest: int) -> list[int]:
    """Return the sizes of arrays that hold so many elements, as equal as can be."""
    count = math.ceil(elements / largest)
    return [elements // count + (number < elements % count) for number in range(count)]


def shares(throttle: int, arrays: int) -> list[int]:
    """Return how many elements of each array may run at once; each at least one, which 0 would not mean to Slurm."""
    return [max(1, throttle // arrays + (number < throttle % arrays)) for number in range(arrays)]
