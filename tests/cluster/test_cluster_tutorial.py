"""The tutorial on clusters does what it says, on a real Slurm."""

from __future__ import annotations

from pathlib import Path

from tests.helpers import ROOT
from tests.helpers.cluster.private_slurm import PrivateSlurm
from tests.helpers.documents.pages_run import run_page


def test_the_tutorial_launches_a_run(
    cluster: PrivateSlurm, campaign_variables: dict[str, str], tmp_path: Path
) -> None:
    variables = {**campaign_variables, "HOME": str(tmp_path)}
    assert run_page(ROOT / "docs" / "tutorials" / "cluster.md", tmp_path, variables, {}) >= 4
    assert (tmp_path / "runs" / "first" / "slurm").is_dir()
