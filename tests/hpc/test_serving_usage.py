"""GPU-hours of servers, by the book and by those that answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.serving.services import Service
from hpc.serving.usage import Hours, hours_by_model
from hpc.slurm.book import JobBook, read_book


def test_ended_jobs_count_by_the_book_and_running_ones_up_to_now(tmp_path: Path) -> None:
    with JobBook(tmp_path / "jobs.jsonl") as book:
        for number, (model, gpus) in enumerate(
            [("big", 8), ("big", 8), ("big", 8), ("small", 1), ("small", 1)]
        ):
            book.intend(f"s{number}", "server", gpus=gpus, purpose=model)
            if number < 4:
                book.submitted(f"s{number}", str(100 + number))
        book.intend("e1", "evaluate", gpus=1)
        book.intend("s9", "server", gpus=0, purpose="on-cpus")
        book.submitted("s9", "109")
        book.ended("s0", "retired", 1800.0)
        book.ended("s1", "node", None)
    answering = Service("102.0", "big", "Big", "http://n1:1/v1", "key", "n1", started=1000.0, ends=9e9)
    found = hours_by_model(read_book(tmp_path / "jobs.jsonl"), [answering], now=1000.0 + 900)
    assert found == {
        "big": Hours(3, pytest.approx(8 * 0.5 + 8 * 0.25), unmetered=1),
        "small": Hours(1, 0.0, unmetered=1),
    }
