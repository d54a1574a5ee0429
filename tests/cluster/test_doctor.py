"""Checks of a machine and of a real cluster, each with something broken."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from hpc.doctor import CheckRequest, Finding, NodeCheck, check_profile, examine_submission, machine, storage
from hpc.doctor.cluster import check_clock
from hpc.slurm import ClusterProfile, Commands, Slurm
from sharp.runs.cluster.doctor_checks import order_for
from sharp.runs.cluster.profiles import render_script
from tests.helpers.cluster.private_slurm import PrivateSlurm
from tests.helpers.cluster.profiles import profile_of

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb /home/a\\040b xfs rw 0 0
mds@tcp:/lustre /scratch lustre rw 0 0
"""
TORCH_FOUND = """print('{"version": "2.0", "seconds": 3.0, "threads": 1, "gpus": 1}')"""


def levels(findings: Iterable[Finding]) -> dict[str, str]:
    return {finding.check: finding.level for finding in findings}


def the(findings: Iterable[Finding], level: str) -> Finding:
    """The only finding of a level, which says what to do."""
    (finding,) = (finding for finding in findings if finding.level == level)
    assert finding.remedy.endswith((".", ")"))
    return finding


def test_the_file_system_of_a_folder() -> None:
    kinds = {"/": "ext4", "/home/x": "nfs4", "/home/a b/c": "xfs", "/scratch": "lustre", "/scratch2": "ext4"}
    assert {folder: storage.file_system(Path(folder), MOUNTS) for folder in kinds} == kinds


def test_a_folder_is_checked_and_left_as_it_was(tmp_path: Path) -> None:
    findings = [*storage.check_writing(tmp_path), *storage.check_space(tmp_path)]
    assert {finding.level for finding in findings} <= {"ok", "warning"}
    assert {"rename", "hard links", "storage clock", "free space"} <= levels(findings).keys()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    found = levels(machine.examine(CheckRequest(str(tmp_path / "gone"))))
    assert found["rename"] == "failure"
    assert found["python"] == "ok", "other checks go on"


def test_a_file_system_without_hard_links_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert "hard links fail" in the(storage.check_writing(tmp_path), "failure").found


def test_a_used_up_quota_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = "Disk quotas for user x (uid 1):\n Filesystem blocks quota limit\n /dev/sda1 99999* 90000 100000"
    program = tmp_path / "quota"
    program.write_text(f"#!/bin/sh\necho '{table}'\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert "/dev/sda1 99999*" in the(storage.check_quota(tmp_path), "failure").found


def test_weights_are_looked_for_by_path(tmp_path: Path) -> None:
    whole, half = tmp_path / "whole", tmp_path / "half"
    for folder in (whole, half):
        folder.mkdir()
        (folder / "config.json").write_text("{}")
    (whole / "model-00001.safetensors").write_bytes(b"x")
    findings = list(machine.check_weights({"a": str(whole), "b": str(half), "c": str(tmp_path / "no")}))
    assert [finding.level for finding in findings] == ["ok", "failure", "failure"]
    assert "model_paths.b" in findings[1].remedy


def test_files_of_a_model_must_be_whole_and_readable(tmp_path: Path) -> None:
    broken, dangling = tmp_path / "broken", tmp_path / "dangling"
    for folder, content in ((broken, "{"), (dangling, "{}")):
        folder.mkdir()
        (folder / "config.json").write_text(content)
        (folder / "model.safetensors").symlink_to(tmp_path / "blobs" / "gone")
    findings = list(machine.check_weights({"a": str(broken), "b": str(dangling)}))
    assert "config.json cannot be read" in findings[0].found
    assert "model.safetensors cannot be read (1 of 1 files)" in findings[1].found
    assert {finding.level for finding in findings} == {"failure"}


def test_how_a_server_is_asked_for_its_version() -> None:
    assert machine.version_command("vllm serve") == ["vllm", "--version"]
    image = ["apptainer", "exec", "--nv", "my image.sif", "vllm"]
    assert machine.version_command("apptainer exec --nv 'my image.sif' vllm serve") == [*image, "--version"]
    assert machine.version_command("/opt/server") == ["/opt/server", "--version"]


@pytest.mark.parametrize(
    ("text", "level", "found"),
    [
        ("echo 0.11.0", "ok", "0.11.0"),
        ("echo ImportError: libcudart.so >&2; exit 1", "failure", "ended with 1: ImportError: libcudart.so"),
    ],
)
def test_the_program_that_serves_must_run(tmp_path: Path, text: str, level: str, found: str) -> None:
    program = tmp_path / "vllm"
    program.write_text(f"#!/bin/sh\n[ $1 = --version ] || exit 9\n{text}\n")
    program.chmod(0o755)
    (finding,) = machine.check_serving(f"{program} serve")
    assert finding.level == level
    assert found in finding.found
    assert (level == "ok") == (finding.remedy == "")


def test_a_server_that_is_not_there_is_found() -> None:
    finding = the(machine.check_serving("/no/such/vllm serve"), "failure")
    assert "/no/such/vllm cannot be run" in finding.found
    assert "serving.command" in finding.remedy
    assert list(machine.check_serving(None)) == []


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({"limits": {"max_jobs": 2}}, "limits.max_jobs is 2"),
        ({"limits": {"max_jobs": 6}}, "dispatch.max_workers is 8, but limits.max_jobs 6"),
        (
            {"dispatch": {"idle_timeout": "2h"}},
            "dispatch.idle_timeout is 7200 s, the time of the role evaluate",
        ),
        (
            {"serving": {"renew_before": "50min"}},
            "renew_before and serving.drain_timeout are 3600 s together",
        ),
        ({"serving": {"startup_timeout": "1h"}}, "serving.startup_timeout is 3600 s"),
    ],
)
def test_figures_of_a_profile_that_do_not_work_together(changes: dict[str, Any], found: str) -> None:
    fitting = {"serving": {"startup_timeout": "30min"}}
    profile = profile_of(role={"time": "1h"}, **{**fitting, **changes})
    assert found in the(check_profile(profile), "warning").found
    assert levels(check_profile(profile_of(role={"time": "1h"}, **fitting))) == {
        "section dispatch": "ok",
        "section serving": "ok",
    }


def test_jax_is_not_asked_for_where_models_are_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_driver(tmp_path, "echo 'NVIDIA H100, 81559 MiB, 550.54'", monkeypatch)
    assert levels(machine.check_gpus(1, jax=False)) == {"gpu": "ok"}


def with_driver(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
    (folder / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")


def test_jax_must_compute_on_the_gpus_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_driver(tmp_path, "echo 'NVIDIA H100, 81559 MiB, 550.54'", monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    gpu, jax = machine.check_gpus(1)
    assert (gpu.level, gpu.found) == ("ok", "NVIDIA H100, 81559 MiB, 550.54")
    assert (jax.level, jax.found) == ("failure", "1 GPUs requested, JAX has cpu 1")
    assert "jax[cuda12]" in jax.remedy


@pytest.mark.parametrize(
    ("script", "gpus", "level", "found"),
    [
        ("print('null')", 0, "note", "PyTorch is not installed"),
        (
            "import no_such_library_of_torch",
            0,
            "failure",
            "cannot be imported in rlimits: ModuleNotFoundError",
        ),
        ("import os; os.abort()", 0, "failure", "cannot be imported in rlimits"),
        (TORCH_FOUND, 0, "ok", "PyTorch 2.0, imported in rlimits in 3.0 s; threads: 1, GPUs: 1"),
        (TORCH_FOUND, 1, "ok", "GPUs: 1"),
        (TORCH_FOUND, 2, "failure", "2 GPUs requested; PyTorch 2.0"),
    ],
)
def test_torch_is_looked_for_where_programs_run(
    script: str, gpus: int, level: str, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_TORCH", script)
    (finding,) = machine.check_torch(CheckRequest("/", gpus=gpus, sandbox_tier="rlimits"))
    assert (finding.level, found in finding.found) == (level, True), finding
    assert not list(machine.check_torch(CheckRequest("/", jax=False)))


def test_a_broken_driver_and_missing_gpus_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_driver(
        tmp_path, "echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", monkeypatch
    )
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    given, driver, _ = machine.check_gpus(2)
    assert "2 GPUs requested, CUDA_VISIBLE_DEVICES=0" in given.found
    assert "version mismatch" in driver.found
    assert {given.level, driver.level} == {"failure"}


def test_an_isolating_tier_that_is_missing_counts_as_asked_for() -> None:
    asked = machine.check_sandbox(CheckRequest("/", sandbox_tier="apptainer", sandbox_image="/no/image.sif"))
    assert "apptainer" in the(asked, "failure").found


@pytest.mark.parametrize(("moment", "level"), [(100, "ok"), (104, "ok"), (90, "warning"), (120, "warning")])
def test_clocks_are_compared_with_what_must_have_been(moment: float, level: str) -> None:
    assert check_clock(moment, earliest=99, latest=102).level == level


def test_a_machine_without_slurm_is_fine_without_a_profile_of(tmp_path: Path) -> None:
    slurm = Slurm(Commands(environment={"PATH": str(tmp_path)}))
    assert levels(examine_submission(slurm, None, render_script)) == {"slurm": "note"}
    assert levels(examine_submission(slurm, profile_of(), render_script)) == {"slurm": "failure"}


def test_submission_is_checked_without_submitting(cluster: PrivateSlurm, slurm: Slurm) -> None:
    before = cluster.command("squeue", "--states=all")
    good = list(examine_submission(slurm, profile_of(), render_script))
    assert "failure" not in levels(good).values()
    assert levels(good)["accounting"] == "note"
    wrong = profile_of(
        job_state_source="sacct",
        limits={"max_array_size": 5000},
        role={"partition": "closed", "constraint": "quantum"},
    )
    bad = levels(examine_submission(slurm, wrong, render_script))
    failing = {"arrays", "accounting", "controller script", "server script", "evaluate script"}
    assert {check for check, level in bad.items() if level == "failure"} == failing
    assert cluster.command("squeue", "--states=all") == before


@pytest.mark.parametrize(("said", "level"), [(None, "warning"), (30, "warning"), (20, "ok")])
def test_limits_of_accounts_and_qos_are_compared_with_the_profile(
    cluster: PrivateSlurm, tmp_path: Path, said: int | None, level: str
) -> None:
    program = tmp_path / "sacctmgr"
    program.write_text(
        "#!/bin/sh\ncase $4 in assoc) echo 'mine|50'; echo 'other|5';; qos) echo 'gpu|20'; echo 'x|';; esac\n"
    )
    program.chmod(0o755)
    environment = {**cluster.environment, "PATH": f"{tmp_path}:{cluster.environment['PATH']}"}
    slurm = Slurm(Commands(environment=environment))
    assert slurm.submit_limits() == {"account mine": 50, "account other": 5, "QoS gpu": 20}
    limits = {} if said is None else {"max_jobs": said}
    profile = profile_of(account="mine", limits=limits, role={"qos": "gpu"})
    found = [f for f in examine_submission(slurm, profile, render_script) if f.check == "jobs at once"]
    assert [finding.level for finding in found] == [level]
    assert "QoS gpu" in found[0].found
    assert ("limits.max_jobs: 20" in found[0].remedy) == (level == "warning")


def node_check(slurm: Slurm, profile: ClusterProfile, folder: Path, wait_s: float = 600) -> NodeCheck:
    return NodeCheck(slurm, profile, render_script, folder, wait_s, grace_s=1)


def test_a_compute_node_reports_by_a_job(slurm: Slurm, tmp_path: Path) -> None:
    profile = profile_of(role={"gpus": 1})
    findings = list(
        node_check(slurm, profile, tmp_path).examine("controller", order_for(profile, "controller", tmp_path))
    )
    found = levels(findings)
    assert {"python", "rename", "sandbox", "scratch", "clock"} <= found.keys()
    assert (found["clock"], found["submission"]) == ("ok", "ok")
    assert all(finding.where in ("controller on n1", "controller on n2") for finding in findings)
    if not Path("/dev/nvidiactl").exists():
        assert found["gpu"] == "failure", "Slurm hands out a GPU that has no driver"
    assert list(tmp_path.iterdir()) == []


def test_a_node_that_is_to_serve_must_have_server_and_weights(slurm: Slurm, tmp_path: Path) -> None:
    program = tmp_path / "vllm"
    program.write_text("#!/bin/sh\necho 0.11.0 on $SLURMD_NODENAME\n")
    program.chmod(0o755)
    profile = profile_of(
        serving={"command": f"{program} serve"}, model_paths={"qwen3-32b": str(tmp_path / "gone")}
    )
    findings = list(
        node_check(slurm, profile, tmp_path).examine("server", order_for(profile, "server", tmp_path))
    )
    (served,) = (finding for finding in findings if finding.check == "serving")
    assert (served.level, served.where) == ("ok", f"server on {served.found.split()[-1]}")
    assert the((f for f in findings if f.check == "model_paths"), "failure").found.startswith("qwen3-32b: ")


def test_a_job_that_cannot_start_python_is_explained(slurm: Slurm, tmp_path: Path) -> None:
    profile = profile_of(python="/no/such/python")
    check = node_check(slurm, profile, tmp_path)
    finding = the(check.examine("evaluate", CheckRequest(str(tmp_path))), "failure")
    assert "/no/such/python" in finding.found
    assert "`python` in the cluster profile" in finding.remedy


def test_a_job_that_does_not_start_is_cancelled(slurm: Slurm, tmp_path: Path) -> None:
    check = node_check(slurm, profile_of(role={"partition": "closed"}), tmp_path, wait_s=1)
    finding = the(check.examine("evaluate", CheckRequest(str(tmp_path))), "failure")
    assert "PENDING, PartitionDown" in finding.found
    job = finding.found.split("job ")[1].split(" ")[0]
    deadline = time.monotonic() + 300
    while not slurm.snapshot([job]).state(job).ended:
        assert time.monotonic() < deadline
        time.sleep(0.2)


def test_a_refused_job_is_a_finding(slurm: Slurm, tmp_path: Path) -> None:
    check = node_check(slurm, profile_of(role={"constraint": "quantum"}), tmp_path)
    assert "feature" in the(check.examine("evaluate", CheckRequest(str(tmp_path))), "failure").found
    assert list(tmp_path.iterdir()) == []
