"""The cluster that other tests use: several side by side, faults on demand, and nothing left behind."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hpc.slurm import Commands, JobState, Slurm
from tests.helpers.cluster.private_slurm import PrivateSlurm, missing, started
from tests.helpers.waiting import until


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
