"""Tutorials do what they say, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.documents.pages_run import run_page
from tests.helpers.models.rule_based_server import answer_by_rules
from tests.helpers.models.scripted_chat_server import serving

PAGES = ROOT / "docs"
# Needs a server, which one test has, or a cluster (tests/cluster/test_cluster_tutorial.py).
ELSEWHERE = {"model-writes", "cluster"}
ALONE = sorted({page.stem for page in (PAGES / "tutorials").glob("*.md")} - ELSEWHERE)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data are made once for all pages."""
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def variables(tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    own = {"SHARP_DATA": str(data), "SHARP_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)}
    for name, value in own.items():
        monkeypatch.setenv(name, value)
    return own


@pytest.mark.parametrize("name", ["start.md", *(f"tutorials/{name}.md" for name in ALONE)])
def test_a_page_does_what_it_says(name: str, tmp_path: Path, variables: dict[str, str]) -> None:
    assert run_page(PAGES / name, tmp_path, variables, {}) >= 4


def test_a_model_behind_a_server_writes_a_solver(tmp_path: Path, variables: dict[str, str]) -> None:
    with serving() as server:
        server.script = [answer_by_rules]
        address = {"http://127.0.0.1:8000/v1": server.url}
        assert run_page(PAGES / "tutorials" / "model-writes.md", tmp_path, variables, address) >= 4
        assert len(server.bodies) > 5
        assert not server.failures
