"""The cluster that other tests use: several side by side, faults on demand, and nothing left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import submitit

from hpc.slurm import Commands, JobState, Slurm
from tests.helpers.cluster.private_slurm import PrivateSlurm, add_sacct, missing, started


def until(condition: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def job(command: str, *directives: str) -> str:
    lines = [f"#SBATCH {directive}" for directive in ("--output=/dev/null", "--mem=50", *directives)]
    return "\n".join(["#!/bin/bash", *lines, command, ""])


def processes_of(cluster: PrivateSlurm) -> list[int]:
    """Processes that name this cluster's folder in their environment or command line."""
    ours, found = str(cluster.folder).encode(), []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                text = (entry / "environ").read_bytes() + (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if ours in text:
                found.append(int(entry.name))
    return found


def test_two_clusters_run_side_by_side_and_leave_nothing(cluster: PrivateSlurm) -> None:
    other = started()
    slurm = Slurm(Commands(environment=other.environment))
    with_daemon = job("(setsid sleep 300 &) ; exec sleep 300", "--comment=t")
    first = slurm.submit(with_daemon, token="t")
    until(lambda: slurm.snapshot([first]).state(first) is JobState.RUNNING)
    assert Slurm(Commands(environment=cluster.environment)).find_by_token("t") == ()
    assert len(processes_of(other)) >= 5
    other.stop()
    until(lambda: not processes_of(other))
    assert not other.folder.exists()
    assert "UP" in cluster.command("scontrol", "ping")


def test_gpus_are_handed_out_once(slurm: Slurm, tmp_path: Path) -> None:
    say = f'echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" > {tmp_path}/$SLURM_ARRAY_TASK_ID; sleep 300'
    array = slurm.submit(job(say, "--gres=gpu:1", "--array=0-5", "--comment=g"), token="g")
    until(lambda: len(list(tmp_path.iterdir())) == 4 and all(f.read_text() for f in tmp_path.iterdir()))
    given = {file.read_text().strip() for file in tmp_path.iterdir()}
    assert given == {f"{node} {gpu}" for node in ("n1", "n2") for gpu in (0, 1)}
    states = [job.state for job in slurm.snapshot([array]).jobs.values()]
    assert states.count(JobState.PENDING) == 2


def test_a_job_of_the_high_partition_displaces_others(slurm: Slurm, tmp_path: Path) -> None:
    start = f"trap 'echo warned >> {tmp_path}/log' USR2; echo start >> {tmp_path}/log; sleep 300 & wait; wait"
    low = job(start, "--exclusive", "--nodes=2", "--requeue", "--signal=B:USR2@1", "--comment=low")
    victim = slurm.submit(low, token="low")
    until(lambda: (tmp_path / "log").exists())
    urgent = slurm.submit(job("true", "--partition=high", "--exclusive", "--comment=high"), token="high")
    until(lambda: slurm.snapshot([urgent]).state(urgent) is JobState.COMPLETED)
    assert not slurm.snapshot([victim]).state(victim).ended
    assert (tmp_path / "log").read_text().split()[:2] == ["start", "warned"], "and then it may start again"


def test_a_cluster_says_why_it_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    reason = missing()
    if reason:
        pytest.skip(reason)
    broken = PrivateSlurm()
    text = broken.configuration.read_text().replace("AuthType=auth/munge", "AuthType=auth/nonsense")
    broken.configuration.write_text(text)
    with pytest.raises(RuntimeError, match="auth/nonsense"):
        broken.start()
    assert not broken.folder.exists()
    assert processes_of(broken) == []


def test_submitit_works_on_it(cluster: PrivateSlurm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_sacct(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:{cluster.environment['PATH']}")
    executor = submitit.AutoExecutor(folder=tmp_path / "jobs", cluster="slurm")
    executor.update_parameters(
        slurm_mem="200MB", timeout_min=5, slurm_wckey="", slurm_array_parallelism=2, slurm_use_srun=False
    )
    jobs = executor.map_array(divmod, [7, 8, 9], [2, 3, 4])
    assert [job.result() for job in jobs] == [(3, 1), (2, 2), (2, 1)]
