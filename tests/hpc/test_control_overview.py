"""A campaign at a glance: its folder and its book, joined with one look at Slurm."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from control_campaigns import made_campaign, said, submitted

from hpc.control.overview import UNASKED, Overview, look, open_jobs, overview
from hpc.lease import Lease
from hpc.serving.services import Service, announce
from hpc.slurm.book import JobBook, read_book
from hpc.slurm.campaign import Campaign, wish
from hpc.slurm.client import Snapshot
from hpc.slurm.ending import write_ending
from hpc.slurm.states import JobState
from hpc.work.queue import Entry, Queue
from hpc.work.roster import Roster, Sign


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    return made_campaign(tmp_path)


def seen(campaign: Campaign, snapshot: Snapshot) -> Overview:
    return overview(campaign, read_book(campaign.book), snapshot)


def test_a_campaign_that_has_just_begun(campaign: Campaign) -> None:
    empty = look(campaign, None)
    assert (empty.controller, empty.successor, empty.roles, empty.jobs) == (None, None, (), 0)
    assert (empty.cluster, empty.id, empty.launched) == ("here", campaign.id, campaign.created)
    assert not empty.at_work
    assert json.loads(json.dumps(empty.to_json()))["work"] == {"waiting": 0, "taken": {}, "nodes": {}}
    assert list(campaign.queue.iterdir()) == [], "looking writes nothing"


def test_who_steers_and_who_follows(campaign: Campaign) -> None:
    for job in ("1", "2", "3"):
        submitted(campaign, "controller", job)
    chain = seen(campaign, said(("1", JobState.TIMEOUT), ("2", JobState.RUNNING), ("3", JobState.PENDING)))
    assert chain.controller is not None
    assert chain.successor is not None
    assert (chain.controller.job, chain.controller.number, chain.controller.node) == ("2", 2, "n1")
    assert (chain.successor.job, chain.successor.number) == ("3", 3)
    assert chain.at_work


def test_without_slurm_the_book_says_who_steers(campaign: Campaign) -> None:
    submitted(campaign, "controller", "1")
    submitted(campaign, "controller", "2")
    blind = look(campaign, None)
    assert blind.controller is not None
    assert blind.successor is not None
    assert (blind.controller.job, blind.controller.state, blind.successor.job) == ("1", None, "2")
    assert blind.notes == UNASKED.notes
    assert blind.at_work


def test_a_controller_that_slurm_no_longer_knows_does_not_steer(campaign: Campaign) -> None:
    submitted(campaign, "controller", "1")
    gone = seen(campaign, said())
    assert (gone.controller, gone.successor, gone.at_work) == (None, None, False)


def test_jobs_are_counted_by_role_and_state(campaign: Campaign) -> None:
    token = submitted(campaign, "evaluate", "7", elements=5)
    with JobBook(campaign.book) as book:
        book.ended(token, "COMPLETED", 50.0)
    submitted(campaign, "evaluate", "8", elements=3)
    submitted(campaign, "server", None)
    counted = seen(campaign, said(("8_0", JobState.RUNNING), ("8_1", JobState.PENDING)))
    evaluate, server = counted.roles
    assert (evaluate.role, evaluate.now, evaluate.ended) == (
        "evaluate",
        {"RUNNING": 1, "PENDING": 1, "UNKNOWN": 1},
        {"COMPLETED": 5},
    )
    assert (server.role, server.now, server.ended) == ("server", {}, {})
    assert (counted.unanswered, counted.jobs) == (1, 9)
    assert open_jobs(read_book(campaign.book)) == ("8",)


def test_work_and_where_it_is_done(campaign: Campaign) -> None:
    queue = Queue(campaign.queue)
    for number in range(4):
        queue.offer(Entry(f"task-{number}", campaign.folder, 5))
    for worker in ("8_0.0", "8_1.0", "8_1.0"):
        assert queue.claim(worker, 10) is not None
    Roster(campaign.queue).write(Sign("8_0.0", "n2", time.time(), time.time()))
    work = seen(campaign, said(("8_1", JobState.RUNNING))).work
    assert (work.waiting, work.taken, work.nodes) == (1, {"8_0": 1, "8_1": 2}, {"8_0": "n2", "8_1": "n1"})


def test_servers_wishes_nodes_and_the_outcome(campaign: Campaign) -> None:
    now = time.time()
    service = Service("12.0", "big", "big", "http://n1:8000/v1", "key", "n1", now, now + 3600)
    announce(campaign.services, service)
    wish(campaign, stop=True, throttle=4)
    with JobBook(campaign.book) as book:
        book.exclude("n3", "failed twice")
    write_ending(campaign, "failed", "the budget of 5 calls is used up (5)")
    full = seen(campaign, said())
    (server,) = full.servers
    assert (server.model, server.job, server.node) == ("big", "12", "n1")
    assert (full.stop, full.throttle, full.avoided) == (True, 4, {"n3": "failed twice"})
    assert full.ending is not None
    assert full.ending.state == "failed"


def test_who_steers_by_hand(campaign: Campaign) -> None:
    lease = Lease.acquire(campaign.place)
    held = seen(campaign, said())
    assert held.holder is not None
    assert (held.holder.pid, held.at_work) == (os.getpid(), True)
    lease.release()
    assert seen(campaign, said()).holder is None
