"""The batch scripts of servers: golden files, and names that reach vLLM as they are.

After a wanted change, `python -m tests.unit.hpc.test_serving_scripts` writes the golden files again.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc.serving import server_script
from hpc.slurm import Campaign, ClusterProfile
from sharp.llm.cards import ModelCard, load_card
from sharp.llm.hosting import server_plans
from sharp.resources import list_resources
from sharp.runs.cluster.profiles import load_cluster, render_script

GOLDEN = Path(__file__).parent / "golden" / "servers"
HOSTILE = 'it\'s 100% "odd" $(touch x) `touch x` ; #1 & *'
CASES = (("gpu-cluster", "qwen3-32b"), ("login-only", "deepseek-r1"), ("cpu-cluster", "deepseekmath-7b"))


def script(cluster: ClusterProfile, card: ModelCard, folder: Path) -> str:
    campaign = Campaign(folder, "3f9a1c2b", cluster, "", "sharp")
    (plan,) = server_plans([card], cluster).values()
    return render_script(
        server_script(campaign, plan, "3f9a1c2b-s1", key_file=campaign.services / "key", excluded=["gpu07"])
    )


def of_cluster(name: str) -> ClusterProfile:
    cluster = load_cluster(list_resources("data", "clusters/*.yaml")[name])
    return cluster.model_copy(update={"python": "/opt/sharp/bin/python"})


def hostile(cluster: ClusterProfile) -> tuple[ClusterProfile, ModelCard]:
    card = load_card("qwen3-32b").model_copy(update={"served_name": HOSTILE})
    return cluster.model_copy(update={"model_paths": {"qwen3-32b": f"/models/{HOSTILE}"}}), card


def golden_scripts() -> Iterator[tuple[Path, str]]:
    for cluster, card in CASES:
        yield (
            GOLDEN / f"{cluster}-{card}.sh",
            script(of_cluster(cluster), load_card(card), Path("/shared/runs/my run")),
        )
    yield GOLDEN / "hostile.sh", script(*hostile(of_cluster("gpu-cluster")), Path("/shared") / HOSTILE)


def test_scripts_are_what_they_were() -> None:
    scripts = dict(golden_scripts())
    assert set(scripts) == set(GOLDEN.glob("*.sh"))
    for file, text in scripts.items():
        assert text == file.read_text(), file.name


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.sh")), ids=lambda file: file.stem)
def test_bash_takes_every_script(file: Path) -> None:
    done = subprocess.run(["bash", "-n", str(file)], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.sh")), ids=lambda file: file.stem)
def test_no_script_holds_a_key(file: Path) -> None:
    text = file.read_text()
    assert "API_KEY" not in text
    assert "--api-key" not in text
    assert "--key-file" in text


def test_the_supervisor_gets_names_as_they_are(tmp_path: Path) -> None:
    echo = tmp_path / "echo"
    echo.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n")
    echo.chmod(0o755)
    folder = tmp_path / HOSTILE
    folder.mkdir()
    cluster, card = hostile(of_cluster("cpu-cluster").model_copy(update={"python": str(echo)}))
    text = script(cluster, card, folder)
    done = subprocess.run(
        ["bash"],
        input=text,
        env={"PATH": os.environ["PATH"]},
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    arguments = json.loads(done.stdout)
    assert arguments[arguments.index("--served-name") + 1] == HOSTILE
    assert arguments[arguments.index("--") + 3] == f"/models/{HOSTILE}"
    assert arguments[arguments.index("--folder") + 1] == str(folder / "slurm" / "servers")
    assert list(folder.iterdir()) == []


if __name__ == "__main__":
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for path in GOLDEN.glob("*.sh"):
        path.unlink()
    for path, content in golden_scripts():
        path.write_text(content)
