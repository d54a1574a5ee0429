"""GPU-hours of servers, by the submission log and by those that answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.campaign import JobUsage, hours_by_model
from hpc.serving import ServerRegistration
from hpc.slurm import SubmissionLog, read_submission_log


def test_ended_jobs_count_by_the_submission_log_and_running_ones_up_to_now(tmp_path: Path) -> None:
    with SubmissionLog(tmp_path / "submissions.jsonl") as submission_log:
        for number, (model, gpus) in enumerate(
            [("big", 8), ("big", 8), ("big", 8), ("small", 1), ("small", 1)]
        ):
            submission_log.log_intent(f"s{number}", "server", gpus=gpus, purpose=model)
            if number < 4:
                submission_log.submitted(f"s{number}", str(100 + number))
        submission_log.log_intent("e1", "evaluate", gpus=1)
        submission_log.log_intent("s9", "server", gpus=0, purpose="on-cpus")
        submission_log.submitted("s9", "109")
        submission_log.ended("s0", "retired", 1800.0)
        submission_log.ended("s1", "node", None)
    answering = ServerRegistration(
        "102.0", "big", "Big", "http://n1:1/v1", "key", "n1", started=1000.0, ends=9e9
    )
    found = hours_by_model(read_submission_log(tmp_path / "submissions.jsonl"), [answering], now=1000.0 + 900)
    assert found == {
        "big": JobUsage(pytest.approx(8 * 0.5 + 8 * 0.25), jobs=3, unmetered=1),
        "small": JobUsage(0.0, jobs=1, unmetered=1),
    }
