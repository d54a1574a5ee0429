"""Times what a large sweep costs beside its runs: planning it, looking at it, resuming it, writing its table.

    python benchmarks/bench_sweeps.py [--repeat 5]

Sweeps are made of one real run (the rule-based model on advection), whose directory stands for each finished cell by
hard links; the rows of the record are its row with other errors. Commands are timed as processes of their own, imports
included.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from functools import partial
from pathlib import Path

from measuring import call_sharp, command_line, print_times, scratch

from sharp.experiments.run_summary import RunSummary
from sharp.experiments.sweeps.file import read_sweep
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.plan import SweepPlan, make_plan
from sharp.experiments.sweeps.runner import acquire_sweep, keep_file, publish_sweep
from sharp.experiments.sweeps.sweep_log import read_record

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


def main(repeat: int = 5) -> None:
    """Print the table."""
    with scratch("SHARP_DATA", "SHARP_CACHE") as folder:
        run, row = one_run(folder)
        large = finished(folder, "large", run, row, f"{THOUSAND}  seed: {list(range(25))}\n")
        small = finished(folder, "small", run, row, f"  seed: {list(range(100))}\n")
        record = make_plan(large.sweep, large.folder, ResourceCache()).record
        works = {
            "plan 1,000 cells": partial(
                call_sharp, "sweep", large.folder / "sweep.yaml", "--dry-run", "--json"
            ),
            "status of 1,000 runs": partial(call_sharp, "status", large.folder),
            "resume 100 finished runs": partial(call_sharp, "sweep", small.folder, "--yes"),
            "resume 1,000 finished runs": partial(call_sharp, "sweep", large.folder, "--yes"),
            "table of 1,000 runs": partial(publish_sweep, large.folder, "large", "", record),
        }
        print_times(works, repeat, REQUIRED_S)


def one_run(folder: Path) -> tuple[Path, RunSummary]:
    """Carry out a sweep of one cell, and return the directory of its run and its row."""
    path = folder / "one.yaml"
    path.write_text(f"name: one\nbase:\n{SMALL}matrix:\n  seed: [0]\n")
    call_sharp("sweep", path, "--dir", folder / "one", "--yes")
    return folder / "one" / "runs" / "s0", read_record(folder / "one").rows["s0"]


def finished(folder: Path, name: str, run: Path, row: RunSummary, matrix: str) -> SweepPlan:
    """Make a sweep all of whose cells are finished."""
    path = folder / f"{name}.yaml"
    path.write_text(f"name: {name}\nbase:\n{SMALL}matrix:\n{matrix}")
    plan = make_plan(read_sweep(path), folder / name, ResourceCache())
    keep_file(plan)
    for cell in plan.cells:
        shutil.copytree(run, plan.folder / "runs" / cell.id, copy_function=os.link)
    with acquire_sweep(plan) as (writer, _):
        for number, cell in enumerate(plan.cells, start=1):
            errors = tuple(2e-4 * number * (14 - after) for after in range(14))
            writer.row(cell.id, replace(row, nrmse=1e-4 * number, best_by_evaluation=errors))
    return plan


if __name__ == "__main__":
    command_line(main)
