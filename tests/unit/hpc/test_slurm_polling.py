"""How often Slurm is asked."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from hpc.slurm import (
    AdaptivePoller,
    Commands,
    Job,
    JobState,
    QueueSnapshot,
    Slurm,
    SlurmError,
    SlurmUnreachable,
)


class Counting(Slurm):
    """Answers from a list, and counts."""

    state = JobState.PENDING
    asked = 0
    away = False

    def snapshot(self, ids: Iterable[str]) -> QueueSnapshot:
        self.asked += 1
        if self.away:
            return QueueSnapshot({}, ("squeue gave no answer",))
        return QueueSnapshot({job: Job(job, self.state, "squeue") for job in ids})


def times_asked(poll: AdaptivePoller, slurm: Counting, now: list[float], seconds: int) -> int:
    before = slurm.asked
    for _ in range(seconds):
        poll.poll(["17"])
        now[0] += 1
    return slurm.asked - before


def test_the_longer_nothing_changes_the_rarer_slurm_is_asked() -> None:
    now, slurm = [0.0], Counting()
    poll = AdaptivePoller(slurm, first_s=10, most_s=180, factor=2, clock=lambda: now[0])
    assert times_asked(poll, slurm, now, 3600) == pytest.approx(3600 / 180 + 5, abs=3)
    slurm.state = JobState.RUNNING
    now[0] += 180
    assert times_asked(poll, slurm, now, 11) == 2, "a change makes it curious again"
    assert poll.poll(["17"]).state("17") is JobState.RUNNING


def test_new_jobs_are_asked_for_at_once() -> None:
    now, slurm = [0.0], Counting()
    poll = AdaptivePoller(slurm, clock=lambda: now[0])
    poll.poll(["17"])
    poll.poll(["17"])
    assert slurm.asked == 1
    assert poll.poll(["17", "18"]).state("18") is JobState.PENDING
    assert slurm.asked == 2


def test_who_has_a_suspicion_asks_at_once() -> None:
    now, slurm = [0.0], Counting()
    poll = AdaptivePoller(slurm, first_s=10, factor=2, clock=lambda: now[0])
    assert times_asked(poll, slurm, now, 5) == 1
    poll.reset_interval()
    assert times_asked(poll, slurm, now, 5) == 1
    assert times_asked(poll, slurm, now, 4) == 0, "and then as often as before"


def test_nothing_is_asked_about_no_jobs() -> None:
    slurm = Counting()
    assert AdaptivePoller(slurm).poll([]).jobs == {}
    assert slurm.asked == 0


def test_while_slurm_is_away_jobs_stay_as_they_were_seen() -> None:
    now, slurm = [0.0], Counting()
    poll = AdaptivePoller(slurm, first_s=10, factor=2, clock=lambda: now[0])
    poll.poll(["17"])
    slurm.away = True
    assert times_asked(poll, slurm, now, 100) == pytest.approx(3, abs=1)
    seen = poll.poll(["17"])
    assert (seen.state("17"), seen.notes) == (JobState.PENDING, ("squeue gave no answer",))


class Listing(Slurm):
    """Lists every job that it is asked about."""

    def __init__(self, per_minute: int) -> None:
        super().__init__(source="squeue", per_minute=per_minute)
        self.questions: list[set[str]] = []

    def _queue(self, run: object = None, *, ids: Iterable[str] = ()) -> list[Job]:
        self._in_turn(lambda: self.questions.append({*ids}))
        return [Job(job, JobState.PENDING, "squeue") for job in ids]


def test_a_rationed_answer_serves_all_who_ask_and_says_whom_it_is_not_about() -> None:
    slurm = Listing(per_minute=2)
    assert slurm.snapshot(["17"]).state("17") is JobState.PENDING
    assert slurm.snapshot(["18"]).state("18") is JobState.PENDING
    again, new = slurm.snapshot(["17"]), slurm.snapshot(["18", "19"])
    assert (again.state("17"), again.notes) == (JobState.PENDING, ())
    assert (new.state("18"), new.state("19")) == (JobState.PENDING, JobState.UNKNOWN)
    assert "not about 1 jobs" in "".join(new.notes), "an unknown job is not one that has ended"
    assert slurm.questions == [{"17"}, {"17", "18"}]


@dataclass(frozen=True)
class Late(Commands):
    """A cluster that gets each question between its being asked and its answer; `now` is the time of both."""

    now: list[float] = field(default_factory=lambda: [0.0])
    arrivals: list[float] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(7))

    def run(self, argv: Sequence[str], **_: object) -> str:
        assert argv[0] == "squeue"
        before, takes = self.chance.choice([0.0, 0.1, 29.0]), self.chance.choice([0.0, 0.5, 30.0])
        self.arrivals.append(self.now[0] + min(before, takes))
        self.now[0] += takes
        if self.chance.random() < 0.3:
            raise SlurmUnreachable("squeue gave no answer.")
        return ""


@pytest.mark.parametrize("seed", range(20))
def test_no_minute_holds_more_than_six_questions_whatever_is_asked_when(seed: int) -> None:
    now, chance = [0.0], random.Random(seed)

    def sleep(seconds: float) -> None:
        now[0] += seconds

    late = Late(now=now, chance=chance, sleep=sleep)
    slurm = Slurm(late, source="squeue", per_minute=6, clock=lambda: now[0])
    asks = [lambda: slurm.snapshot(["17"]), lambda: slurm.named("x"), lambda: slurm.find_by_token("t")]
    while now[0] < 3600:
        with suppress(SlurmError):
            chance.choices(asks, weights=[20, 1, 1])[0]()
        now[0] += chance.choice([0.0, 0.0, 0.001, 1.0, 9.999, 59.9])
    assert len(late.arrivals) > 100
    spans = [late.arrivals[k + 6] - late.arrivals[k] for k in range(len(late.arrivals) - 6)]
    assert min(spans) > 60 - 1e-9, "seven questions within one minute"
