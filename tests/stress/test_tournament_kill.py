from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.helpers import finding_helpers


def test_a_tournament_killed_at_every_journal_boundary_ends_as_if_undisturbed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.helpers.journal.tournament_kills", str(tmp_path)],
        env=finding_helpers(),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    kills, effects = (int(part.split()[0]) for part in done.stdout.strip().split(","))
    assert kills >= 40
    assert effects >= 20
