from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from hpc.processes import descendants


@pytest.fixture
def scratch_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give temporary files a home of their own; check that it is empty and no process is left at the end."""
    home = tmp_path / "scratch"
    home.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(home))
    before = descendants(os.getpid())
    yield home
    assert list(home.iterdir()) == []
    assert descendants(os.getpid()) == before
