"""A study on a real Slurm: planned, launched, rendered on the way and when it is finished."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.cluster.campaigns import Place
from tests.helpers.cluster.private_slurm import PrivateSlurm

SWEEP = """\
name: tiny
base:
  problem: advection
  evaluation: {data_kind: reference, validation: 2, test: 2, smoke: 1, wall_s: 300, convergence_check: false}
  genesis: {candidates: 2}
  synthesis: {max_cycles: 1, max_rounds: 1}
matrix:
  method: [codepde, pde-sharp]
  seed: [0, 1]
"""
STUDY = """\
name: tiny
title: Two methods
reproduces: nothing
description: A trial.
sweep: tiny
models: {generators: [gpt-4o]}
quick: {seeds: 1, set: {evaluation.timing_repeats: 1}}
views:
- {title: Errors, rows: [method]}
"""


@pytest.fixture
def place(cluster: PrivateSlurm, tmp_path: Path, campaign_variables: dict[str, str]) -> Iterator[Place]:
    """A place that knows a study of two small runs."""
    for kind, text in (("sweeps", SWEEP), ("studies", STUDY)):
        path = tmp_path / "resources" / "data" / kind / "tiny.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    found = Place(cluster, tmp_path, {**campaign_variables, "SHARP_RESOURCES": str(tmp_path / "resources")})
    found.write_profile()
    yield found
    found.stop()


def test_a_study_is_carried_out_by_jobs_and_rendered_by_hand(place: Place) -> None:
    study = ("reproduce", "tiny", "--quick", "--dir", place.run)
    on_cluster = (*study, "--cluster", place.profile)
    dry = place.sharp(*on_cluster, "--dry-run")
    assert dry.returncode == 0, dry.stderr
    assert "2 cells (2 new)" in dry.stdout
    assert f"-m sharp.controller {place.run}" in dry.stdout
    assert not place.run.exists()
    assert place.sharp(*on_cluster).returncode == 2, "nobody has agreed to submit jobs"
    launched = place.sharp(*on_cluster, "--yes")
    assert launched.returncode == 0, launched.stderr
    render = f"sharp reproduce tiny --report-only --dir {place.run}"
    assert launched.stdout.endswith(f"Once it is finished, write its page with: {render}\n")
    on_the_way = place.sharp(*study, "--report-only")
    assert on_the_way.returncode == 0, on_the_way.stderr
    assert "of 2 runs finished" in on_the_way.stdout
    ending = place.until_ended()
    assert (ending.state, ending.sentence[:9]) == ("finished", "Finished."), place.story()
    done = place.sharp(*study, "--report-only", "--json")
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["states"] == {"finished": 2}
    assert {record["row"] for record in said["records"]} == {"method=codepde", "method=pde-sharp"}
    assert all(Path(said["files"][kind]).is_file() for kind in ("html", "markdown", "csv"))
    again = place.sharp(*on_cluster, "--yes")
    assert again.returncode == 0, again.stderr
    assert "It has finished already." in again.stdout
