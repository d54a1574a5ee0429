"""The methods that PDE-SHARP is compared with, from the command to the report, played by the rule-based model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import PROBLEM, Sharp, settings

METHODS: dict[str, dict[str, str]] = {
    "codepde": {},
    "cot-reflection": {},
    "moa": {},
    "cepo": {"cepo__best_of": "2", "cepo__plans": "2"},
    "codepde-refine": {"refine__parents": "[2]", "refine__generations": "2"},
    "funsearch": {"funsearch__initial": "2", "funsearch__iterations": "2", "funsearch__islands": "1"},
    "aide": {"aide__steps": "4", "aide__drafts": "2"},
}


@pytest.mark.parametrize("method", METHODS)
def test_a_method_runs_from_end_to_end_without_a_model_and_says_so(
    method: str, sharp: Sharp, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    changes = {"genesis__candidates": "2", "synthesis__repairs": "1", **METHODS[method]}
    process = sharp.start("run", PROBLEM, "--run-dir", folder, *settings(method=method, **changes))
    said, complaints = process.communicate()
    assert process.returncode == 0, complaints
    assert "Winner: " in said
    assert "rule-based" in (folder / "report.md").read_text()
    assert "def solver" in next((folder / "solver").glob("*.py")).read_text()
