"""`run.yaml` read on its own: a run of another format is refused, in one line that names both."""

from pathlib import Path

import pytest

from hpc.errors import RunVersionError
from sharp.runs.manifest import read_manifest


def test_a_run_of_the_first_format_is_refused_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text("format: 1\nsoftware: 0.1.0\nconfig: {models: {replay_from: null}}\n")
    with pytest.raises(RunVersionError) as refused:
        read_manifest(tmp_path)
    (line,) = str(refused.value).splitlines()
    assert "written in run format 1 (pde-sharp 0.1.0)" in line
    assert "reads format 3" in line
