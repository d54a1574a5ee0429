"""Times 500 trivial tasks on a private Slurm: packed by the dispatcher, as a bare array, as one job for each.

    python benchmarks/bench_dispatch.py [--tasks 500] [--elements 8] [--single 60] [--repeat 3]

Slurm's daemons are started for it (see docs/slurm.md): two nodes of four CPUs each, all on this machine.

- packed: entries of a queue, done by elements of one array, from the first offer to the last result that is seen;
- bare: one `sbatch --array` whose elements are `true`, from sbatch to the end of the last as squeue shows it;
- single: one `sbatch` for each task, which starts Python and does nothing, as tools do that submit a job for every
  candidate; for `--single` tasks, times `tasks / single`.

All three are taken one after the other in each repetition, so that they see the same machine.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "slurm"))
from private_slurm import PrivateSlurm, missing, started

from hpc.queue import Dispatcher, PilotOptions, WorkItem, serve
from hpc.quiescence import QuiescenceTracker
from hpc.slurm import Campaign, ClusterProfile, Commands, Slurm, acquire_control, create_campaign
from sharp.runs.cluster.profiles import render_script

REQUIRED = 1.5
LOOK_S = 0.1


async def touch(entry: WorkItem) -> None:
    """Do an entry."""
    (entry.folder / entry.id).touch()


def element(terms: Mapping[str, Any]) -> None:
    """Be an element that does trivial entries."""
    asyncio.run(serve(PilotOptions(**terms), touch))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time many trivial tasks on a private Slurm.")
    parser.add_argument("--tasks", type=int, default=500)
    parser.add_argument("--elements", type=int, default=8)
    parser.add_argument("--single", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if reason := missing():
        parser.exit(1, reason + "\n")
    with ExitStack() as stack:
        cluster = started()
        stack.callback(cluster.stop)
        rows = [_row(cluster, options) for _ in range(options.repeat)]
    names = ("packed", "bare", "single")
    middle = {name: statistics.median(row[name] for row in rows) for name in names}
    for name in names:
        each = ", ".join(f"{row[name]:.1f}" for row in rows)
        print(f"{name:8}{middle[name]:8.1f} s   ({each})")
    to_bare = statistics.median(row["packed"] / row["bare"] for row in rows)
    to_single = statistics.median(row["single"] / row["packed"] for row in rows)
    print(f"packed / bare: {to_bare:.2f} (at most {REQUIRED} is required); single / packed: {to_single:.1f}")
    print(
        f"{options.tasks} tasks, {options.elements} elements, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}"
    )


def _row(cluster: PrivateSlurm, options: argparse.Namespace) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        packed = asyncio.run(_packed(cluster, Path(folder), options.tasks, options.elements))
        cluster.wait_until_idle()
        bare = _bare(cluster, options.tasks)
        cluster.wait_until_idle()
        single = _single(cluster, options.single) * options.tasks / options.single
        cluster.wait_until_idle()
    return {"packed": packed, "bare": bare, "single": single}


async def _packed(cluster: PrivateSlurm, folder: Path, tasks: int, elements: int) -> float:
    results = folder / "results"
    results.mkdir()
    campaign = _campaign(folder, math.ceil(tasks / elements), elements)
    slurm = Slurm(Commands(environment=cluster.environment), source="squeue")
    entries = [WorkItem(f"task-{number}", results, 10) for number in range(tasks)]
    with acquire_control(campaign) as control:
        async with Dispatcher(
            replace(control, slurm=slurm),
            QuiescenceTracker(),
            pilot=element,
            render=render_script,
            warn=print,
        ) as dispatcher:
            start = time.perf_counter()
            await asyncio.gather(*(dispatcher.perform(each, (results / each.id).exists) for each in entries))
            seconds = time.perf_counter() - start
            await dispatcher.withdraw_all()
    return seconds


def _campaign(folder: Path, pack: int, parallel: int) -> Campaign:
    role = {"time": "10min", "memory": "100MB"}
    fields = {
        "name": "private",
        "job_state_source": "squeue",
        "dispatch": {"items_per_worker": pack, "max_workers": parallel},
    }
    roles = dict.fromkeys(("controller", "server", "evaluate"), role)
    return create_campaign(folder, ClusterProfile.model_validate({**fields, "roles": roles}))


def _bare(cluster: PrivateSlurm, tasks: int) -> float:
    start = time.perf_counter()
    _submit(cluster, f"--array=0-{tasks - 1}", "--wrap=true")
    _await_end(cluster)
    return time.perf_counter() - start


def _single(cluster: PrivateSlurm, tasks: int) -> float:
    start = time.perf_counter()
    for _ in range(tasks):
        _submit(cluster, f"--wrap={sys.executable} -P -c pass")
    _await_end(cluster)
    return time.perf_counter() - start


def _submit(cluster: PrivateSlurm, *arguments: str) -> None:
    cluster.command("sbatch", "--output=/dev/null", "--mem=100", "--time=10", *arguments)


def _await_end(cluster: PrivateSlurm) -> None:
    while cluster.command("squeue", "-h", "-u", str(os.getuid())):
        time.sleep(LOOK_S)


if __name__ == "__main__":
    main()
