"""GPU-hours of servers, by the book and by those that answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.campaign import JobUsage, hours_by_model
from hpc.serving import ServerRegistration
from hpc.slurm import SubmissionLog, read_book


def test_ended_jobs_count_by_the_book_and_running_ones_up_to_now(tmp_path: Path) -> None:
    with SubmissionLog(tmp_path / "submissions.jsonl") as book:
        for number, (model, gpus) in enumerate(
            [("big", 8), ("big", 8), ("big", 8), ("small", 1), ("small", 1)]
        ):
            book.log_intent(f"s{number}", "server", gpus=gpus, purpose=model)
            if number < 4:
                book.submitted(f"s{number}", str(100 + number))
        book.log_intent("e1", "evaluate", gpus=1)
        book.log_intent("s9", "server", gpus=0, purpose="on-cpus")
        book.submitted("s9", "109")
        book.ended("s0", "retired", 1800.0)
        book.ended("s1", "node", None)
    answering = ServerRegistration(
        "102.0", "big", "Big", "http://n1:1/v1", "key", "n1", started=1000.0, ends=9e9
    )
    found = hours_by_model(read_book(tmp_path / "submissions.jsonl"), [answering], now=1000.0 + 900)
    assert found == {
        "big": JobUsage(pytest.approx(8 * 0.5 + 8 * 0.25), jobs=3, unmetered=1),
        "small": JobUsage(0.0, jobs=1, unmetered=1),
    }
