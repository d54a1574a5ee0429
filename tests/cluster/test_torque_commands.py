"""Jobs by PSI/J with a real `qsub` and `qdel`: those of Slurm's Torque wrappers, on the private cluster."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hpc.slurm import Commands, JobState
from hpc.slurm.psij_jobs import PsijJobs
from tests.helpers.cluster.private_slurm import PrivateSlurm
from tests.helpers.waiting import until

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=tool-1a2b3c4d-evaluate
#SBATCH --output={folder}/%A_%a.out
#SBATCH --array=0-2
#SBATCH --time=5
#SBATCH --partition=main
echo "$SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID"
[ "$SLURM_ARRAY_TASK_ID" = 2 ] && sleep 600
exit "$SLURM_ARRAY_TASK_ID"
"""


@pytest.mark.skipif(shutil.which("qsub") is None, reason="apt-get install slurm-wlm-torque")
def test_jobs_of_the_torque_wrappers_are_known_by_their_files(
    cluster: PrivateSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their `qstat` prints no JSON, so states come from the files alone; a whole job goes through qsub and qdel."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    client = PsijJobs(
        "pbs_classic", tmp_path / "jobs", Commands(environment=cluster.environment, pauses_s=())
    )
    array = client.submit(SCRIPT.format(folder=tmp_path), token="t1")
    jobs = [f"{array}_{number}" for number in range(3)]

    def states() -> list[JobState]:
        seen = client.snapshot([array])
        return [seen.state(job) for job in jobs]

    until(lambda: states() == [JobState.COMPLETED, JobState.FAILED, JobState.RUNNING])
    assert (tmp_path / f"{jobs[1]}.out").read_text() == f"{array} 1\n"
    client.cancel([array])
    until(lambda: not cluster.command("squeue", "-h"))
    assert list(here.iterdir()) == [], "nothing of a job lands in the user's directory"
