"""A finished run's last checkpoint as a user opens it, with zarr and numpy alone."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import zarr

from hpc.journal import read_run
from tests.helpers import ROOT
from tests.helpers.cli.sharp_command import last_checkpoint

GUIDE = ROOT / "docs" / "guides" / "recovery.md"


@pytest.fixture(scope="module")
def group(finished: Path) -> zarr.Group:
    return last_checkpoint(finished)


def test_metrics_by_cycle_round_and_judge(group: zarr.Group) -> None:
    metric = group["state/round_metric"]
    assert metric.metadata.dimension_names == ("cycle", "round", "judge")
    assert metric.shape == (1, 2, 2)
    assert np.isfinite(metric[:]).all()
    entries = {name: group[f"state/turn_{name}"][:] for name in ("cycle", "round", "judge", "metric")}
    places = tuple(entries[name] - 1 for name in ("cycle", "round", "judge"))
    assert (metric[:][places] == entries["metric"]).all()


def test_candidates_and_lineage(group: zarr.Group) -> None:
    names = group["state/candidate_id"][:].tolist()
    assert names[:4] == ["c001", "c002", "c003", "c004"]
    hybrids = [name for name in names if name.startswith("h1.2.")]
    assert hybrids
    parents = dict(zip(names, group["state/candidate_parents"][:].tolist(), strict=True))
    assert parents["c001"] == "[]"
    assert all(json.loads(parents[name])[0] in names[: -len(hybrids)] for name in hybrids)
    places = dict(zip(names, group["state/candidate_place"][:].tolist(), strict=True))
    assert places[hybrids[0]] == [1, 2, int(hybrids[0][-1])]
    assert all("def solver(" in code for code in group["state/candidate_code"][:].tolist())


def test_selections(group: zarr.Group) -> None:
    nominees = group["state/selection_nominee"][:].tolist()
    assert group["state/selection_judge"][:].tolist() == [1, 2]
    assert set(nominees) <= set(group["state/candidate_id"][:].tolist())
    assert all('"c00' in shown for shown in group["state/selection_shortlist"][:].tolist())


def test_every_effect_has_a_row_in_the_ledger(group: zarr.Group, finished: Path) -> None:
    effects = read_run(finished).effects
    paths = group["state/ledger_path"][:].tolist()
    assert set(paths) == set(effects)
    assert paths == group["effects/path"][:].tolist()
    seconds = dict(zip(paths, group["meta/seconds"][:].tolist(), strict=True))
    assert seconds == {path: effect.meta["seconds"] for path, effect in effects.items()}
    tokens = dict(zip(paths, group["state/ledger_completion_tokens"][:].tolist(), strict=True))
    purpose = dict(zip(paths, group["state/ledger_purpose"][:].tolist(), strict=True))
    for path, effect in effects.items():
        chat = effect.kind == "chat"
        assert tokens[path] == (effect.reply["usage"]["completion"] if chat else 0)
        assert purpose[path] == (effect.request["purpose"] if chat else purpose[path])
    assert purpose["finalize/test"] == "test"


def test_every_array_says_what_it_holds(group: zarr.Group) -> None:
    arrays = dict(group["state"].arrays())
    assert len(arrays) > 50
    assert all(array.attrs["description"] for array in arrays.values())
    assert all(len(array.metadata.dimension_names) == array.ndim for array in arrays.values())


def test_the_documented_way_to_open_a_checkpoint(finished: Path) -> None:
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)[1]
    assert not re.search(r"\b(sharp|hpc)\b", code.replace("runs/first", ""))
    shown = subprocess.run(
        [sys.executable, "-c", code.replace("runs/first", str(finished))], capture_output=True, text=True
    )
    assert shown.returncode == 0, shown.stderr
    assert "metric of each turn" in shown.stdout
