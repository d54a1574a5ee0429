"""How many files a run leaves: quotas of shared file systems count them."""

from __future__ import annotations

import signal
from pathlib import Path

from hpc.journal import read_run
from tests.helpers.cli.sharp_command import PROBLEM, Sharp, end, settings, wait_for

LONG = {"synthesis__max_cycles": "3", "synthesis__max_rounds": "3"}
NAMES = {"request.json", "result.json"}


def test_a_run_leaves_two_files_an_evaluation_and_few_others(sharp: Sharp, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = sharp.start("run", PROBLEM, "--run-dir", run, *settings(**LONG))
    for done in (2, 5):
        wait_for(lambda done=done: len([*run.glob("tasks/*/result.json")]) >= done, process)
        end(process, signal.SIGKILL)
        process = sharp.start("resume", run)
    assert process.communicate()[1]
    assert process.returncode == 0
    left = [path for path in run.rglob("*") if path.is_file()]
    of_evaluations = [path for path in left if path.is_relative_to(run / "tasks")]
    evaluations = sum(effect.kind == "evaluate" for effect in read_run(run).effects.values())
    assert {path.name for path in of_evaluations} == NAMES
    assert 0 < len(of_evaluations) <= 2 * (evaluations + 1)  # and the look at where programs run
    assert max(int(path.name[:4]) for path in (run / "checkpoints").glob("*.zarr.zip")) > 8
    assert len(left) - len(of_evaluations) <= 50
