"""Rows that are added to a sweep file while a controller on a cluster works on it."""

from __future__ import annotations

import asyncio
import csv
from pathlib import Path

import pytest

from hpc.campaign import WorkloadProgress
from hpc.slurm import ClusterProfile, acquire_control, create_campaign
from sharp.errors import ConfigurationError
from sharp.experiments.sweeps.plan import SweepPlan
from sharp.experiments.sweeps.runner import keep_file
from sharp.experiments.sweeps.workload import SweepWorkload, launch_sweep
from sharp.llm.protocol import ChatRequest
from sharp.runs.advance import never_stop
from sharp.runs.directory import RunDirectory
from tests.helpers.experiments.small_sweeps import SmallSite, plan_of

ROLE = {"time": "1h"}
CLUSTER = ClusterProfile.model_validate(
    {"name": "here", "roles": dict.fromkeys(("controller", "server", "evaluate"), ROLE)}
)


def step_of(plan: SweepPlan, site: SmallSite, warnings: list[str]) -> WorkloadProgress:
    """Do what a controller job does with its campaign in hand, until it has nothing more to do."""
    return asyncio.run(SweepWorkload.of(plan.folder).step(site, never_stop, warnings.append))


def rows(folder: Path) -> dict[str, str]:
    with (folder / "table.csv").open() as file:
        return {row["cell"]: row["state"] for row in csv.DictReader(file)}


def test_they_are_taken_up_when_the_cells_that_it_knew_are_at_rest(tmp_path: Path) -> None:
    said: list[str] = []

    def extend(_run: RunDirectory, request: ChatRequest) -> None:
        """Give the command for a longer file, once, in the middle of the first tournament."""
        if request.purpose == "judge" and not said:
            longer = plan_of(tmp_path, "matrix: {feedback.metrics: [[nrmse], [residual]], seed: [0, 1]}\n")
            said.append(launch_sweep(longer, CLUSTER, lambda *_: None).sentence)

    plan, site, warnings = (
        plan_of(tmp_path, "matrix: {feedback.metrics: [[nrmse]], seed: [0]}\n"),
        SmallSite(extend),
        [],
    )
    keep_file(plan)
    with acquire_control(create_campaign(plan.folder.absolute(), CLUSTER)):
        first = step_of(plan, site, warnings)
        assert said[0].startswith("It is under way already: process")
        assert said[0].endswith("It runs the added cells when the others have completed or failed.")
        assert first == WorkloadProgress(False, ("the cells that were added to the sweep file",))
        assert rows(plan.folder) == {"nrmse-s0": "finished"}
        assert step_of(plan, later := SmallSite(paid=site.paid), warnings).done
    assert rows(plan.folder) == dict.fromkeys(
        ["nrmse-s0", "nrmse-s1", "residual-s0", "residual-s1"], "finished"
    )
    assert set(site.before_judges.values()) == {1}
    assert not later.purposes["residual-s0", "genesis"]
    assert not warnings


def test_a_row_that_is_taken_away_meanwhile_stays_on_disk_and_leaves_the_table(tmp_path: Path) -> None:
    both, one = "matrix: {seed: [0, 1]}\n", "matrix: {seed: [1]}\n"

    def shorten(_run: RunDirectory, request: ChatRequest) -> None:
        if request.purpose == "judge":
            keep_file(plan_of(tmp_path, one))

    plan = plan_of(tmp_path, both)
    keep_file(plan)
    assert not step_of(plan, SmallSite(shorten), []).done
    assert rows(plan.folder) == {"s0": "finished", "s1": "finished"}
    assert step_of(plan, none := SmallSite(), []).done
    assert not none.paid
    assert rows(plan.folder) == {"s1": "finished"}
    assert (plan.folder / "runs" / "s0" / "report.html").exists()


def test_a_file_that_became_wrong_meanwhile_ends_the_next_step_only(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, "matrix: {seed: [0]}\n")
    keep_file(plan)

    def spoil(_run: RunDirectory, request: ChatRequest) -> None:
        if request.purpose == "judge":
            (plan.folder / "sweep.yaml").write_text("name: tiny\nbase: advection\nmatrix: {sed: [0]}\n")

    assert not step_of(plan, SmallSite(spoil), []).done
    assert rows(plan.folder) == {"s0": "finished"}
    with pytest.raises(ConfigurationError, match="'sed' is not a key of a run configuration"):
        step_of(plan, SmallSite(), [])
