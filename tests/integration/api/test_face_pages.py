"""The examples of the pages and of the folder `examples` run as they stand."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import sharp
from tests.helpers import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def run_examples(text: str, name: str) -> None:
    parsed = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    assert len(parsed.examples) > 5
    said: list[str] = []
    doctest.DocTestRunner(optionflags=FLAGS).run(parsed, out=said.append)
    assert not said, "".join(said)


def test_the_examples_of_the_module_run() -> None:
    run_examples(str(sharp.__doc__), "sharp")


def test_the_examples_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SHARP_DATA", str(tmp_path / "data"))
    page = (ROOT / "docs" / "guides" / "python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for name in sharp.__all__:
        if name[0].islower():
            assert any(f"sharp.{name}(" in block for block in blocks), (
                f"docs/guides/python.md shows no {name}"
            )
    run_examples("\n".join(blocks), "docs/guides/python.md")


@pytest.mark.parametrize(
    ("script", "printed"),
    [
        ("solve_a_problem.py", "Verified: estimated relative error"),
        ("verify_your_own.py", "128 cells: verified, error at most"),
        ("write_a_solver.py", "a program of one's own, against the data"),
    ],
)
def test_the_scripts_run(script: str, printed: str, tmp_path: Path) -> None:
    environment = {**os.environ, "SHARP_DATA": str(tmp_path / "data")}
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / script), str(tmp_path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert printed in done.stdout


def test_every_script_is_run() -> None:
    (mark,) = (mark for mark in test_the_scripts_run.pytestmark if mark.name == "parametrize")  # type: ignore[attr-defined]
    assert {script for script, _ in mark.args[1]} == {path.name for path in (ROOT / "examples").glob("*.py")}
