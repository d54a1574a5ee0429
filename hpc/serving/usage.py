"""What the servers of a campaign held GPUs for."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from hpc.serving.services import Service
from hpc.slurm.book import Book, Submission


@dataclass(frozen=True)
class Hours:
    """Server jobs of one model, and the GPU-hours that they held; of `unmetered` jobs nobody knows how many."""

    jobs: int = 0
    gpu_hours: float = 0.0
    unmetered: int = 0


def hours_by_model(book: Book, services: Iterable[Service], now: float | None = None) -> dict[str, Hours]:
    """Return what each model's servers held GPUs for: by the book, and of those that answer now up to now.

    Servers without GPUs do not count.
    """
    started = {service.job: service.started for service in services}
    hours: dict[str, Hours] = defaultdict(Hours)
    for submission in book.of_role("server"):
        if submission.job_id is not None and submission.gpus:
            before, held = hours[submission.purpose], _held(submission, started, now or time.time())
            hours[submission.purpose] = Hours(
                before.jobs + 1, before.gpu_hours + (held or 0.0), before.unmetered + (held is None)
            )
    return dict(hours)


def _held(submission: Submission, started: dict[str, float], now: float) -> float | None:
    """Return the GPU-hours of a job; one that answers nobody any more, or not yet, and has not ended: unknown."""
    if submission.ended is not None:
        return submission.gpu_hours
    began = started.get(submission.job_id or "")
    return None if began is None else submission.gpus * (now - began) / 3600
