"""Tools that one trial builds are used by later ones: the same after a replay, a kill, and a damaged record."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from sharp.agent.sessions import SessionResult, replay_session
from sharp.agent.settings import AgentConfig
from sharp.errors import ConfigurationError
from sharp.experiments.agent_benchmark.trials import Result, handed_over
from sharp.experiments.run_summary import RunSummary
from sharp.experiments.sweeps.folder import run_path
from sharp.experiments.sweeps.plan import SweepPlan
from sharp.experiments.sweeps.sweep_log import log_file
from tests.helpers.experiments.benchmarks import carried_out, planned
from tests.helpers.experiments.small_sweeps import Watch

CASES = ("heat-rod-two-ends", "heat-wall-convection", "rod-one-end", "diffusion-two-salts")
ARMS = ("tool-generation", "single-model")


def sweep(folder: Path, cases: tuple[str, ...] = CASES, policies: tuple[str, ...] = ARMS[:1]) -> SweepPlan:
    return planned(folder, cases, policies)


def timeless(results: list[Result]) -> list[Result]:
    return [replace(each, seconds=0.0) for each in results]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Result]]:
    """Four cases, both policies that write programs; not to be changed."""
    folder = tmp_path_factory.mktemp("tools") / "bench"
    return folder, carried_out(sweep(folder, policies=ARMS))


def test_a_tool_built_in_one_case_is_imported_in_a_later_one(played: tuple[Path, list[Result]]) -> None:
    _, results = played
    first, second, asked, last = results[::2]
    assert first.tools_used == ()
    assert "bounded" in first.tools_built
    assert "bounded" in second.tools_used
    assert "bounded" not in second.tools_built
    assert not asked.tools_built  # whoever asks writes no program
    assert set(last.tools_used) <= first.tools_built.keys() | second.tools_built.keys()
    assert last.tools_used
    alone = results[1::2]
    assert all(not each.tools_used and not each.tools_built for each in alone)
    assert second.completion_tokens < alone[1].completion_tokens
    assert [getattr(each, "solved", None) for each in results] == [True] * 4 + [None] * 2 + [True] * 2


def test_a_session_with_tools_replays_from_its_own_folder(played: tuple[Path, list[Result]]) -> None:
    folder, results = played
    (session,) = run_path(folder, sweep(folder, policies=ARMS).cells[2].id).glob("session-*")
    settings = AgentConfig.from_json(yaml.safe_load((session / "agent.yaml").read_text()))
    assert settings.tools == handed_over(results[:1])
    again: SessionResult = replay_session(session.parent, settings)
    assert (again.tools_used, again.tools_built) == (results[2].tools_used, results[2].tools_built)


class KilledError(Exception):
    """Stands for the end of the process."""


class Killing(Watch):
    """Ends the sweep when the first trial has been recorded."""

    def cell_finished(self, cell: str, row: RunSummary) -> None:
        super().cell_finished(cell, row)
        raise KilledError


def test_a_sweep_that_is_killed_between_and_within_trials_goes_on_with_the_same_tools(
    played: tuple[Path, list[Result]], tmp_path: Path
) -> None:
    folder, wanted = tmp_path / "bench", timeless(played[1][::2])
    with pytest.raises(KilledError):
        carried_out(sweep(folder), Killing())
    assert timeless(carried_out(sweep(folder))) == wanted
    # The last trial loses its row, its result, and the end of its session's journal.
    plan = sweep(folder)
    last = run_path(folder, plan.cells[-1].id)
    lines = log_file(folder).read_bytes().splitlines(keepends=True)
    rows = [number for number, line in enumerate(lines) if b'"event":"row"' in line]
    log_file(folder).write_bytes(b"".join(lines[: rows[-1]]))
    (last / "result.json").unlink()
    (journal,) = last.glob("session-*/journal.jsonl")
    journal.write_bytes(journal.read_bytes()[:-40])
    watch = Watch()
    assert timeless(carried_out(sweep(folder), watch)) == wanted
    assert watch.begun_cells == [plan.cells[-1].id]


def test_a_trial_is_another_one_where_the_cases_before_it_are(
    played: tuple[Path, list[Result]], tmp_path: Path
) -> None:
    folder = tmp_path / "bench"
    shutil.copytree(played[0], folder)
    more = sweep(folder, (*CASES, "diffusion-dish"), ARMS)
    assert [cell.id for cell in more.unfinished_cells] == [cell.id for cell in more.cells[-2:]]
    with pytest.raises(ConfigurationError, match="a case before it, whose tools it takes over"):
        sweep(folder, ("heat-wall-convection", *CASES[:1], *CASES[2:]))
    assert not sweep(folder, CASES[::-1], ARMS[1:]).unfinished_cells
