"""`sharp launch` and `sharp advance` without Slurm: what is shown, and what is refused before anything is made."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.cli.sharp_command import PROBLEM, Sharp, settings

ROLE = {"time": "1h"}


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    return write_profile(tmp_path)


def write_profile(folder: Path, **changes: Any) -> Path:
    content = {"name": "here", "roles": dict.fromkeys(("controller", "server", "evaluate"), ROLE), **changes}
    path = folder / "here.yaml"
    path.write_text(json.dumps(content))
    return path


@pytest.fixture
def nowhere(sharp: Sharp, tmp_path: Path) -> Sharp:
    """A machine without Slurm."""
    return sharp.with_variables(PATH=str(tmp_path))


def test_a_dry_run_shows_everything_and_does_nothing(nowhere: Sharp, profile: Path, tmp_path: Path) -> None:
    folder = tmp_path / "my run"
    planned = ("launch", PROBLEM, "--cluster", profile, "--run-dir", folder, "--dry-run", *settings())
    for script in nowhere.json(*planned)["scripts"]:
        assert str(folder) in script["script"]
        subprocess.run(["bash", "-n"], input=script["script"], text=True, check=True)
    assert not folder.exists()
    words = nowhere(*planned).stdout
    assert "#SBATCH --dependency=afternotok:0,singleton" in words
    assert "Language-model calls" in words
    assert "Evaluation jobs: at most 8 at once" in words
    cost = nowhere.json(*planned)["cost"]
    assert f"Jobs: {cost['jobs']['expected']} expected, {cost['jobs']['most']} at most" in words
    assert 2 <= cost["jobs"]["expected"] <= cost["jobs"]["most"] == 1 + cost["evaluations"]["most"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([PROBLEM], "--cluster NAME is missing"),
        ([PROBLEM, "--cluster", "gpu-clutser"], "did you mean 'gpu-cluster'?"),
        ([PROBLEM, "--cluster", "cpu-cluster", "--budget", "calls=5"], "--set KEY=VALUE"),
        ([PROBLEM, "--cluster", "cpu-cluster", "--run-dir", "two\nlines"], "one line of printable text"),
        ([PROBLEM, "--cluster", "cpu-cluster", "--set", "evaluation.wall_s=9999"], "roles.evaluate.time"),
        ([".", "--set", "seed=1"], "--set only changes a new run"),
        (["."], "holds no run"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_made(
    nowhere: Sharp, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    before = set(nowhere.folder.iterdir())
    done = nowhere("launch", *arguments)
    assert done.returncode in (2, 5), done.stderr
    assert sentence in done.stderr
    assert set(nowhere.folder.iterdir()) == before


def test_without_slurm_no_run_is_made(nowhere: Sharp, profile: Path, tmp_path: Path) -> None:
    assert "no command 'sbatch'" in nowhere.fails(
        7, "launch", PROBLEM, "--cluster", profile, "--run-dir", tmp_path / "run", *settings()
    )
    assert not (tmp_path / "run").exists()


def test_a_run_that_was_not_launched_has_no_steps(sharp: Sharp, copied: Path) -> None:
    for verb in ("advance", "launch"):
        assert "--cluster NAME" in sharp.fails(2, verb, copied)
        assert not (copied / "slurm").exists()


def test_a_finished_run_is_finished_by_hand_at_once(sharp: Sharp, copied: Path, tmp_path: Path) -> None:
    profile = write_profile(tmp_path, submit_from_compute=False)
    launched = sharp.ok("launch", copied, "--cluster", profile)
    assert f"advance {copied} >> {copied}/slurm/logs/advance.log" in launched.stdout
    step = sharp.ok("advance", copied, "--json")
    assert json.loads(step.stdout) == {"folder": str(copied), "done": True, "waiting_for": []}
    assert "finished already" in sharp("launch", copied).stdout
    assert sharp("advance", copied).stdout.startswith("Winner: ")
