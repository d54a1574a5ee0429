from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
HELPERS = [HERE.parents[1] / "hpc", HERE.parent / "stages"]


@pytest.mark.slow
def test_a_tournament_killed_at_every_journal_boundary_ends_as_if_undisturbed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(HERE / "tournament_kills.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, HELPERS))},
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    kills, effects = (int(part.split()[0]) for part in done.stdout.strip().split(","))
    assert kills >= 80
    assert effects >= 20
