"""Campaigns on a real Slurm from their launch to their report: controllers, arrays, successors, steps by hand."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc.journal import read_run
from tests.helpers.cli.sharp_command import PROBLEM
from tests.helpers.cluster.campaigns import Place, fast, same_tournament
from tests.helpers.cluster.private_slurm import PrivateSlurm

HOSTILE = 'it\'s a "run" #1 $(touch odd); 100%'


@pytest.fixture
def place(cluster: PrivateSlurm, tmp_path: Path, campaign_variables: dict[str, str]) -> Iterator[Place]:
    """A place whose name no shell should read."""
    folder = tmp_path / HOSTILE
    folder.mkdir()
    place = Place(cluster, folder, campaign_variables)
    yield place
    place.stop()


def test_a_tournament_outlives_its_controllers(place: Place, local_tournament: Path) -> None:
    """Nothing is evaluated before the first controller has left, so that it cannot come to the end."""
    place.close_gate()
    place.write_profile(controller_chain={"exit_margin": "570s", "max_no_progress": 100})
    said = place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    again = place.launch(place.run)
    assert again["campaign"] == said["campaign"]
    assert "under way" in again["sentence"]
    step = place.sharp("advance", place.run)
    assert step.returncode == 75
    assert "carries it on" in step.stdout
    first = place.submission_log.of_role("controller")[0]
    place.until(lambda: place.submission_log.submissions[first.token].ended, "the first controller's end")
    assert place.submission_log.submissions[first.token].ended == "left"
    place.open_gate()
    ending = place.until_ended()
    assert (ending.state, ending.sentence[:7]) == ("finished", "Winner:")
    controllers = place.submission_log.of_role("controller")
    assert len(controllers) >= 2
    same_tournament(place.run, local_tournament)
    place.assert_paid_once()
    assert (place.run / "report.html").stat().st_size > 10_000
    assert place.sharp("replay", place.run).returncode == 0
    after = place.launch(place.run)
    assert after["job"] is None
    assert "finished already" in after["sentence"]
    assert place.sharp("advance", place.run).returncode == 0
    assert len(place.submission_log.of_role("controller")) == len(controllers)


def test_a_run_goes_on_by_hand_where_jobs_may_not_submit(place: Place, local_tournament: Path) -> None:
    place.write_profile(submit_from_compute=False, dispatch={"max_workers": 2, "idle_timeout": "20s"})
    said = place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    assert said["job"] is None
    assert f"sharp advance {shlex.quote(str(place.run))}" in said["sentence"]
    assert "*/10 * * * *" in said["sentence"]
    waited = []
    while (step := place.sharp("advance", place.run, "--json")).returncode == 75:
        waited += json.loads(step.stdout)["waiting_for"]
        time.sleep(3)
    assert step.returncode == 0, step.stderr
    assert set(waited) == {"evaluations on private"}
    assert place.until_ended().state == "finished"
    assert not place.submission_log.of_role("controller")
    same_tournament(place.run, local_tournament)
    place.assert_paid_once()


def test_a_budget_ends_the_chain_and_a_larger_one_lets_it_go_on(place: Place) -> None:
    place.write_profile()
    few = (*fast(budget__calls="3"), "--set", "seed=5")
    place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *few)
    ending = place.until_ended()
    assert ending.state == "failed"
    assert "budget of 3 calls is used up" in ending.sentence
    refused = place.sharp("advance", place.run)
    assert refused.returncode == 5
    assert f"sharp launch {shlex.quote(str(place.run))}" in refused.stderr
    assert len(read_run(place.run).effects) == 3
    (controller, *_) = place.submission_log.of_role("controller")
    assert "ExitCode=6:0" in place.cluster.command("scontrol", "show", "job", str(controller.job_id))
    place.launch(place.run, "--budget", "calls=5")
    place.until(lambda: place.ending is not None and "5 calls" in place.ending.sentence, "the next budget")
    place.until_ended()
    assert len(read_run(place.run).effects) == 5
    place.assert_paid_once()


def test_a_chain_that_brings_nothing_ends(place: Place) -> None:
    place.close_gate()
    place.write_profile(controller_chain={"exit_margin": "599s", "max_no_progress": 2})
    place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    place.until(lambda: place.ending, "the campaign's end")
    place.open_gate()
    ending = place.until_ended()
    assert ending.state == "failed"
    assert "Nothing new was recorded in 2 controller jobs in a row" in ending.sentence


def test_walltimes_and_people_end_controllers(place: Place) -> None:
    place.close_gate()
    place.write_profile(time="2min", margin="90s")
    place.launch(PROBLEM, "--cluster", place.profile, "--run-dir", place.run, *fast())
    first = place.submission_log.of_role("controller")[0]
    place.until(lambda: place.submission_log.submissions[first.token].ended, "the first controller's end")
    over = place.submission_log.submissions[first.token]
    assert over.ended in ("left", "FAILED"), "by itself, or when Slurm warned it; not TIMEOUT"
    assert over.seconds is not None
    assert over.seconds < 120
    place.until(lambda: len(place.submission_log.of_role("controller")) >= 3, "the successor has a successor")
    place.cluster.command("scancel", "-u", str(os.getuid()))
    place.until(lambda: not place.jobs(), "no job is left")
    time.sleep(3)
    assert not place.jobs(), "nothing comes back"
    assert place.ending is None or place.ending.state == "failed"
    place.launch(place.run)
    place.until(lambda: len(place.jobs()) >= 2, "it goes on")
    assert place.sharp("cancel", place.run, "--yes").returncode == 0
    place.until(lambda: not place.jobs(), "no job is left")
    stopped = place.sharp("advance", place.run)
    assert stopped.returncode == 5
    assert "stop was requested" in stopped.stderr
