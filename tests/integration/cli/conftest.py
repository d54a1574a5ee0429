from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.helpers.cli.sharp_command import Sharp


@pytest.fixture(scope="session")
def sharp(tmp_path_factory: pytest.TempPathFactory) -> Sharp:
    return Sharp(tmp_path_factory.mktemp("sharp"))


@pytest.fixture(scope="session")
def finished(sharp: Sharp) -> Path:
    """One finished run, not to be changed."""
    path = sharp.folder / "finished"
    done = sharp.run(path)
    assert done.returncode == 0, done.stderr
    (sharp.folder / "finished.stderr").write_text(done.stderr)
    return path


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of the finished run, to be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


@pytest.fixture
def edited(copied: Path) -> Callable[[str, str, str], Path]:
    """The copy with one piece of one file replaced."""

    def edit(name: str, old: str, new: str) -> Path:
        text = (copied / name).read_text()
        assert old in text
        (copied / name).write_text(text.replace(old, new, 1))
        return copied

    return edit
