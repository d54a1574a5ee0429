"""The scripts of campaigns: golden files, and hostile values that reach the program as they are.

After a wanted change, `python -m tests.unit.hpc.test_campaign_scripts` writes the golden files again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc.campaign import ControllerJob, link_script
from hpc.slurm import Campaign, ClusterProfile, ScriptError
from sharp.llm.cards import load_card
from sharp.resources import list_resources
from sharp.runs.cluster.launch import JobPreview, preview
from sharp.runs.cluster.profiles import load_cluster, render_script
from sharp.runs.cluster.workload import RunWorkload

GOLDEN = Path(__file__).parent / "golden" / "campaigns"
SHIPPED = ("cpu-cluster", "gpu-cluster", "login-only")
MODELS = ("rule-based", "qwen3-32b")
HOSTILE = 'it\'s 100% "odd" $(touch x) `touch x` ; #1 & *'


def of_cluster(name: str) -> ClusterProfile:
    cluster = load_cluster(list_resources("data", "clusters/*.yaml")[name])
    return cluster.model_copy(update={"python": "/opt/sharp/bin/python"})


def planned(cluster: ClusterProfile, folder: Path, at_once: int = 3) -> list[JobPreview]:
    cards = [load_card(name) for name in MODELS]
    return preview(folder, RunWorkload.module, cards, cluster, at_once=at_once)


def golden_scripts() -> Iterator[tuple[Path, str]]:
    for name in SHIPPED:
        for number, job in enumerate(planned(of_cluster(name), Path("/shared/runs/my run"))):
            yield GOLDEN / f"{name}-{number}-{job.role}.sh", job.in_words()
    for number, job in enumerate(planned(of_cluster("gpu-cluster"), Path("/shared") / HOSTILE)):
        yield GOLDEN / f"hostile-{number}-{job.role}.sh", job.in_words()


def test_scripts_are_what_they_were() -> None:
    scripts = dict(golden_scripts())
    assert set(scripts) == set(GOLDEN.glob("*.sh"))
    for file, text in scripts.items():
        assert text == file.read_text(), file.name


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.sh")), ids=lambda file: file.stem)
def test_bash_takes_every_script(file: Path) -> None:
    done = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_no_controller_is_planned_where_jobs_may_not_submit_jobs() -> None:
    assert {job.role for job in planned(of_cluster("login-only"), Path("/r"))} == {"evaluate", "server"}


def test_an_array_has_the_elements_that_are_wanted() -> None:
    dispatch = of_cluster("cpu-cluster").dispatch.model_copy(update={"items_per_worker": 2, "max_workers": 4})
    cluster = of_cluster("cpu-cluster").model_copy(update={"dispatch": dispatch})

    def array(at_once: int) -> str:
        (job,) = (job for job in planned(cluster, Path("/r"), at_once) if job.role == "evaluate")
        return next(line for line in job.script.splitlines() if "--array" in line).partition("=")[2]

    assert [array(count) for count in (1, 3, 100)] == ["0-0", "0-1", "0-3"]


def test_the_program_gets_the_folder_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / HOSTILE
    folder.mkdir()
    echo = tmp_path / "echo"
    echo.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    echo.chmod(0o755)
    cluster = of_cluster("cpu-cluster").model_copy(update={"python": str(echo)})
    campaign = Campaign(folder, "c", cluster, "", "sharp")
    script = render_script(link_script(ControllerJob(campaign, "module", "c-c1")))
    environment = {"PATH": os.environ["PATH"]}
    done = subprocess.run(
        ["bash"], input=script, env=environment, cwd=folder, capture_output=True, text=True, check=True
    )

    assert json.loads(done.stdout) == ["-P", "-m", "module", str(folder), "c-c1"]
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("name", ["two\nlines", "tab\t", "\x1b[0m", "back\\slash"])
def test_folders_that_no_script_can_carry_are_refused(name: str) -> None:
    with pytest.raises(ScriptError):
        planned(of_cluster("cpu-cluster"), Path("/shared") / name)


if __name__ == "__main__":
    shutil.rmtree(GOLDEN, ignore_errors=True)
    GOLDEN.mkdir(parents=True)
    for path, content in golden_scripts():
        path.write_text(content)
