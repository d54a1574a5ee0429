"""`sharp cluster` and `sharp doctor` as commands, against a real cluster."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cluster.private_slurm import PrivateSlurm

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def sharp(tmp_path: Path) -> Command:
    """The command, with a home of its own and the environment as it is now."""
    home = tmp_path / "home"
    home.mkdir()

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config")}
        argv = [sys.executable, "-P", "-m", "sharp.cli", *map(str, arguments)]
        return subprocess.run(argv, env=environment, cwd=home, capture_output=True, text=True, timeout=300)

    return run


def test_a_cluster_is_drafted_checked_and_used(cluster: PrivateSlurm, sharp: Command, tmp_path: Path) -> None:
    drafted = sharp("cluster", "init", "mine")
    assert drafted.returncode == 0, drafted.stderr
    assert drafted.stdout.endswith("then: sharp doctor --cluster mine\n")
    names = [entry["name"] for entry in json.loads(sharp("cluster", "list", "--json").stdout)]
    assert names == sorted(["mine", "cpu-cluster", "gpu-cluster", "login-only"])
    script = sharp("cluster", "show", "mine", "--script", "server").stdout
    assert "#SBATCH --gres=gpu:1" in script
    again = sharp("cluster", "init", "mine")
    assert (again.returncode, "--force replaces it" in again.stderr) == (2, True)
    healthy = sharp("doctor", "--cluster", "mine", "--role", "controller", "--dir", tmp_path, "--json")
    answer = json.loads(healthy.stdout)
    assert (healthy.returncode, answer["ok"]) == (0, True), healthy.stdout
    assert any(finding["where"].startswith("controller on n") for finding in answer["findings"])


def test_what_is_wrong_is_said_and_makes_the_exit_code(
    cluster: PrivateSlurm, sharp: Command, tmp_path: Path
) -> None:
    profile = tmp_path / "odd.yaml"
    role = "{time: 5min, partition: closed}"
    profile.write_text(
        f"name: odd\nmodel_paths: {{no-model: /nowhere}}\n"
        f"roles: {{controller: {role}, server: {role}, evaluate: {role}}}\n"
    )
    done = sharp("doctor", "--cluster", profile, "--no-job", "--dir", tmp_path)
    assert done.returncode == 7
    assert "failure  partitions: partition closed of the role server" in done.stdout
    assert "failure  model_paths: there is no model card 'no-model'" in done.stdout
    assert "failure  model_paths: no-model: /nowhere is no folder" in done.stdout
    assert done.stderr.count("sharp:") == 0


def test_wrong_arguments_are_named(sharp: Command) -> None:
    assert "no cluster profile 'nope'" in sharp("doctor", "--cluster", "nope").stderr
    done = sharp("doctor", "--wait", "soon")
    assert (done.returncode, "--wait: expected a time such as 30min" in done.stderr) == (2, True)


def test_without_slurm_init_says_where_to_go(sharp: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    done = sharp("cluster", "init", "mine")
    assert done.returncode == 7
    assert "There is no command 'sinfo'. Run this on a login node" in done.stderr
