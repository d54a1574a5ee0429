"""The files that a run leaves: how many, for quotas count them, and who of a group may go on with them."""

from __future__ import annotations

import os
import signal
import stat
from pathlib import Path

from hpc.journal import read_run
from tests.helpers.cli.sharp_command import PROBLEM, Sharp, end, settings, wait_for

LONG = {"synthesis__max_cycles": "3", "synthesis__max_rounds": "3"}
NAMES = {"request.json", "result.json"}


def test_a_run_leaves_two_files_an_evaluation_and_few_others_which_a_group_may_share(
    sharp: Sharp, tmp_path: Path
) -> None:
    """The folder is a group's (`chmod g+s`) and the umask lets the group write: so are all files, after kills too."""
    run, group = tmp_path / "run", os.getgid() if os.geteuid() else 54321
    os.chown(tmp_path, -1, group)
    tmp_path.chmod(0o2775)
    process = sharp.start("run", PROBLEM, "--run-dir", run, *settings(**LONG), umask=0o002)
    for done in (2, 5):
        wait_for(lambda done=done: len([*run.glob("tasks/*/result.json")]) >= done, process)
        end(process, signal.SIGKILL)
        process = sharp.start("resume", run, umask=0o002)
    assert process.communicate()[1]
    assert process.returncode == 0
    left = [path for path in run.rglob("*") if path.is_file()]
    of_evaluations = [path for path in left if path.is_relative_to(run / "tasks")]
    evaluations = sum(effect.kind == "evaluate" for effect in read_run(run).effects.values())
    assert {path.name for path in of_evaluations} == NAMES
    assert 0 < len(of_evaluations) <= 2 * (evaluations + 1)  # and the look at where programs run
    assert max(int(path.name[:4]) for path in (run / "checkpoints").glob("*.zarr.zip")) > 8
    assert len(left) - len(of_evaluations) <= 50
    for path in run, *run.rglob("*"):
        found = path.stat()
        assert (found.st_gid, found.st_mode & 0o060) == (group, 0o060), path
        assert path.is_file() or found.st_mode & stat.S_ISGID, path
