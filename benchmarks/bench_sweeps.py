"""Times what a large sweep costs beside its runs: planning it, looking at it, resuming it, writing its table.

    python benchmarks/bench_sweeps.py [--repeat 5]

Sweeps are made of one real run (the rule-based model on advection), whose directory stands for each finished cell by
hard links; rows of the record are those that such runs leave. Commands are timed as processes of their own, imports
included.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from sharp.experiments.run_summary import RunSummary
from sharp.experiments.sweeps.file import read_sweep
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.plan import SweepPlan, make_plan
from sharp.experiments.sweeps.runner import acquire_sweep, keep_file, publish_sweep

SHARP = [sys.executable, "-P", "-m", "sharp.cli"]
REQUIRED_S = {"plan 1,000 cells": 5.0, "status of 1,000 runs": 2.0, "resume 100 finished runs": 5.0}
SMALL = """\
  problem: advection
  evaluation: {data_kind: reference, validation: 2, test: 2, smoke: 1}
  genesis: {candidates: 4}
  models: {judges: [rule-based]}
  synthesis: {max_cycles: 1, max_rounds: 1}
"""
THOUSAND = """\
  models.judges: {one: [rule-based], two: [rule-based, o3], three: [gpt-4o, o3, rule-based], four: [o3, o3, o3, o3]}
  feedback.metrics: [[nrmse], [residual], [nrmse, residual], [nrmse, cfl], [none]]
  synthesis.mode: [tournament, best-of-n]
"""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time what a large sweep costs beside its runs.")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each; the median counts")
    repeat = parser.parse_args().repeat
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        os.environ |= {"SHARP_DATA": str(folder / "data"), "SHARP_CACHE": str(folder / "cache")}
        run = one_run(folder)
        large = finished(folder, "large", run, f"{THOUSAND}  seed: {list(range(25))}\n")
        small = finished(folder, "small", run, f"  seed: {list(range(100))}\n")
        commands = {
            "plan 1,000 cells": ["sweep", str(large.folder / "sweep.yaml"), "--dry-run", "--json"],
            "status of 1,000 runs": ["status", str(large.folder)],
            "resume 100 finished runs": ["sweep", str(small.folder), "--yes"],
            "resume 1,000 finished runs": ["sweep", str(large.folder), "--yes"],
        }
        print(f"{'what':28} {'median s':>9} {'least s':>9} {'required s':>11}")
        for name, command in commands.items():
            show(name, [timed(partial(call, command)) for _ in range(repeat)])
        record = make_plan(large.sweep, large.folder, ResourceCache()).record
        write = partial(publish_sweep, large.folder, "large", "", record)
        show("table of 1,000 runs", [timed(write) for _ in range(repeat)])


def one_run(folder: Path) -> Path:
    """Carry out a sweep of one cell, and return the directory of its run."""
    path = folder / "one.yaml"
    path.write_text(f"name: one\nbase:\n{SMALL}matrix:\n  seed: [0]\n")
    call(["sweep", str(path), "--dir", str(folder / "one"), "--yes"])
    return folder / "one" / "runs" / "s0"


def finished(folder: Path, name: str, run: Path, matrix: str) -> SweepPlan:
    """Make a sweep all of whose cells are finished."""
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nbase:\n{SMALL}matrix:\n{matrix}")
    plan = make_plan(read_sweep(path), folder / name, ResourceCache())
    keep_file(plan)
    for cell in plan.cells:
        shutil.copytree(run, plan.folder / "runs" / cell.id, copy_function=os.link)
    with acquire_sweep(plan) as (writer, _):
        for number, cell in enumerate(plan.cells):
            writer.row(cell.id, row(number))
    return plan


def row(number: int) -> RunSummary:
    """Return a row as full as those of real runs."""
    return RunSummary(
        "finished",
        problem="advection",
        method="pde-sharp",
        roles={"analyst": "o3", "generator": "o3", "judge 1": "o3", "reporter": "o3"},
        rule_based="none",
        winner="h1.2.1",
        winner_strategy="numerical",
        nrmse=1e-4 * (1 + number),
        nrmse_reference=1e-4 * (2 + number),
        data_error=1e-3,
        flag="below",
        validation_nrmse=2e-4 * (1 + number),
        run_time_s=0.25,
        device="cpu",
        rounds=4,
        cycles=1,
        best_by_evaluation=tuple(2e-4 * (1 + number) * (14 - after) for after in range(14)),
        best_by_round=(8e-4, 6e-4, 4e-4, 2e-4),
        evaluations=14,
        executions=40,
        calls=60,
        prompt_tokens=1_000_000 + number,
        completion_tokens=100_000,
        dollars=1.25,
        standalone_dollars=1.25,
        evaluation_seconds=100.0,
        seconds=1000.0,
        strategies={"numerical": 30, "analytical": 2},
        libraries={"JAX": 0.25, "NumPy": 0.75},
        winner_libraries={"NumPy": 1.0},
        failures={"exception": 2},
        data="advection@275b98f61546",
        software="0.1.0",
        prompts="2152bd8097a4",
    )


def show(name: str, seconds: list[float]) -> None:
    """Print a row of the table."""
    required = f"{REQUIRED_S[name]:11.1f}" if name in REQUIRED_S else ""
    print(f"{name:28} {statistics.median(seconds):9.2f} {min(seconds):9.2f} {required}")


def call(arguments: list[str]) -> None:
    """Run the command; fails if it does."""
    subprocess.run([*SHARP, *arguments], check=True, capture_output=True)


def timed(work: Callable[[], object]) -> float:
    """Return the seconds that something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
