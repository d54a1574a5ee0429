from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import finding_helpers


@pytest.mark.parametrize(
    ("scenario", "at_least"), [("fresh", 150), ("torn", 60), ("damaged", 30), ("lost", 30)]
)
def test_a_run_killed_at_any_system_call_resumes_as_if_undisturbed(
    tmp_path: Path, scenario: str, at_least: int
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.journal.kill_points", str(tmp_path), scenario],
        env=finding_helpers(OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=600,
    )

    assert done.returncode == 0, done.stderr
    assert int(done.stdout.split()[0]) >= at_least
