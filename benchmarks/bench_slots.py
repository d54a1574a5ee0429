"""Throughput of one job that works on several evaluations at once, against one at a time.

    python benchmarks/bench_slots.py [--tasks 24] [--slots 1 2 4] [--seconds 0.5] [--work compute]

One job of the private Slurm does all tasks, for each number of slots (`dispatch.slots_per_worker`). A task computes
in one thread for so many processor seconds, or sleeps for as long (`--work sleep`: what the queue and the slots
themselves cost, and no statement about a machine). Printed is the number of tasks a second from the first that began to
the last that ended, and its ratio to one slot; with fewer free cores than slots it is bounded by these.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench_dispatch import dispatched
from measuring import Table, command_line, scratch

from hpc.queue import PilotOptions, WorkItem, in_slots, serve
from hpc.slurm import ClusterProfile, create_campaign

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.helpers.cluster.private_slurm import PrivateSlurm, missing, started


async def work(entry: WorkItem) -> None:
    """Do a task, and note when it began and ended."""
    began, seconds = time.time(), float(entry.options["seconds"])
    if entry.options["work"] == "sleep":
        await asyncio.sleep(seconds)
    else:
        until = time.process_time() + seconds
        while time.process_time() < until:
            pass
    (entry.folder / entry.id).write_text(f"{began} {time.time()}")


def element(terms: Mapping[str, Any]) -> None:
    """Be a job that works in slots."""
    options = PilotOptions(**terms)
    in_slots(options, lambda: asyncio.run(serve(options, work)))


def main(
    tasks: int = 24,
    slots: list[int] = [1, 2, 4],  # noqa: B006  the default of the command line
    seconds: float = 0.5,
    work: str = "compute",
) -> None:
    """Print the table."""
    if reason := missing():
        sys.exit(reason)
    cluster, rates = started(nodes=1), dict[int, float]()
    table = Table("slots", "tasks a second:.2f", "ratio:.2f")
    try:
        for count in slots:
            with scratch() as folder:
                options = {"seconds": str(seconds), "work": work}
                rates[count] = asyncio.run(_rate(cluster, folder, tasks, count, options))
            cluster.wait_until_idle()
            table.row(str(count), rates[count], rates[count] / rates[slots[0]])
    finally:
        cluster.stop()
    print(f"{tasks} tasks that {work} for {seconds} s, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")


async def _rate(
    cluster: PrivateSlurm, folder: Path, tasks: int, slots: int, options: Mapping[str, str]
) -> float:
    results = folder / "results"
    results.mkdir()
    role = {"time": "30min", "memory": "1GB", "cpus": 4}
    profile = {
        "name": "private",
        "job_state_source": "squeue",
        "dispatch": {"items_per_worker": tasks, "slots_per_worker": slots, "max_workers": 1},
        "roles": dict.fromkeys(("controller", "server", "evaluate"), role),
    }
    campaign = create_campaign(folder, ClusterProfile.model_validate(profile))
    entries = [WorkItem(f"task-{number}", results, 10, options) for number in range(tasks)]
    await dispatched(cluster, campaign, entries, element)
    times = [tuple(map(float, (results / each.id).read_text().split())) for each in entries]
    return tasks / (max(end for _, end in times) - min(begin for begin, _ in times))


if __name__ == "__main__":
    command_line(main)
