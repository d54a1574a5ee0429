"""The examples of the module and of its page run as they stand."""

from __future__ import annotations

import doctest
import re
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
