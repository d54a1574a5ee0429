"""The agent benchmark on this machine, as the command has it: a sweep of trials, one at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from sharp.experiments.agent_benchmark.trials import BenchmarkTrial, Result, result_of, trial_matrix, trial_of
from sharp.experiments.sweeps.file import sweep_of
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.plan import SweepPlan, make_plan
from sharp.experiments.sweeps.runner import run_sweep_locally
from sharp.experiments.sweeps.sweep_log import read_record
from tests.helpers.experiments.small_sweeps import Watch


def planned(
    folder: Path,
    cases: Sequence[str],
    policies: Sequence[str],
    rates: Sequence[float] = (0.0,),
    seeds: int = 1,
    styles: Sequence[str] = (),
    teams: Sequence[str] = ("rule-based",),
    budget: Mapping[str, float] | None = None,
    at_once: int = 1,
) -> SweepPlan:
    """The sweep of these trials as it stands in a folder."""
    limits = {"runs": at_once, "evaluations": at_once}
    matrix = trial_matrix(cases, policies, teams, rates, seeds, styles)
    content = {"name": "b", "base": {"problem": "", "trial": {}}, "matrix": matrix, "limits": limits}
    content["budget"] = dict(budget or {})
    return make_plan(sweep_of(content), folder, ResourceCache())


def trials_of(plan: SweepPlan) -> list[BenchmarkTrial]:
    """The trials of a plan, in its order."""
    return [trial_of(cell.config) for cell in plan.cells]


def carried_out(plan: SweepPlan, watch: Watch | None = None) -> list[Result]:
    """The results of all trials, in the order of the plan, after those that were open were run."""
    run_sweep_locally(plan, watch or Watch())
    rows = read_record(plan.folder).rows
    return [result_of(rows[cell.id].trial) for cell in plan.cells]
