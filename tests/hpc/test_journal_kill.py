from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("kill_points.py")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scenario", "at_least"), [("fresh", 150), ("torn", 60), ("damaged", 30), ("lost", 30)]
)
def test_a_run_killed_at_any_system_call_resumes_as_if_undisturbed(
    tmp_path: Path, scenario: str, at_least: int
) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path), scenario],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= at_least
