"""Batch scripts and profiles on a real Slurm."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from hpc.slurm import (
    JobState,
    RoleName,
    Script,
    Slurm,
    SlurmRefused,
    log_pattern,
    role_script,
)
from sharp.errors import ConfigurationError
from sharp.runs.cluster.profiles import draft_cluster, load_cluster, render_script
from tests.helpers.cluster.profiles import profile_of
from tests.helpers.waiting import until
from tests.unit.hpc.test_slurm_script import HOSTILE


def run_and_wait(slurm: Slurm, script: Script, token: str) -> JobState:
    job = slurm.submit(render_script(script), token=token)
    until(lambda: slurm.snapshot([job]).state(job).ended)
    return slurm.snapshot([job]).state(job)


def test_slurm_reads_hostile_values_as_they_are(slurm: Slurm, tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s 100% $(odd) %j #1 "x"'
    folder.mkdir()
    token = "a \"token\" #1 $(x) 'y' \\ é"
    script = Script(
        name="name " + " ".join(HOSTILE),
        command=("printf", "%s\\n", *HOSTILE),
        directives={"comment": token, "output": log_pattern(folder), "mem": "50M", "exclusive": False},
        environment={"V": "x"},
    )
    assert run_and_wait(slurm, script, token) is JobState.COMPLETED
    (job,) = slurm.find_by_token(token)
    assert slurm.snapshot([job]).jobs[job].name == script.name
    assert (folder / f"{job}.out").read_text().splitlines() == list(HOSTILE)
    assert not list(tmp_path.rglob("x"))


def test_a_failing_line_of_setup_ends_the_job(slurm: Slurm, tmp_path: Path) -> None:
    script = Script(
        "x",
        ("touch", str(tmp_path / "ran")),
        {"comment": "t", "output": log_pattern(tmp_path), "mem": "50M"},
        setup=("false",),
    )
    assert run_and_wait(slurm, script, "t") is JobState.FAILED
    assert not (tmp_path / "ran").exists()


def test_options_that_a_cluster_refuses_are_left_out(slurm: Slurm) -> None:
    strict = profile_of({"time": "1min", "memory": "50MB", "directives": {"licenses": "matlab"}})
    lenient = strict.model_copy(update={"unsupported_options": ("licenses",)})
    scripts = [
        render_script(role_script(c, "evaluate", name="x", token="t", command=("true",), log="/dev/null"))
        for c in (strict, lenient)
    ]
    with pytest.raises(SlurmRefused, match="license"):
        slurm.test(scripts[0])
    slurm.test(scripts[1])


def test_a_real_cluster_takes_its_own_draft(slurm: Slurm, tmp_path: Path) -> None:
    path = draft_cluster("real", slurm, tmp_path / "real.yaml")
    cluster = load_cluster(path)
    assert cluster.job_state_source == "squeue"
    for role in get_args(RoleName):
        script = role_script(cluster, role, name="x", token="t", command=("true",), log=log_pattern(tmp_path))
        slurm.test(render_script(script))
    with pytest.raises(ConfigurationError, match="is there already"):
        draft_cluster("real", slurm, path)
    with pytest.raises(ConfigurationError, match="expected a name such as mycluster"):
        draft_cluster("Not A Name", slurm, None)
