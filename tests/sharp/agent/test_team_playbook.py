"""The team as the playbook plays it: sound without mistakes, and brought back by correction where it makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.journal import Journal
from sharp.agent.effects import RecordedEffects
from sharp.agent.playbook import Knowledge, TeamPlaybook
from sharp.agent.pool import Pool
from sharp.agent.prog_act import Course, prog_act
from sharp.agent.team import Sampling, Team
from sharp.agent.toolkit import standard_toolkit
from sharp.agentbench.cases import Case, load_case
from sharp.agentbench.illposed import load_ill_posed
from sharp.errors import ModelRefused

CASE = load_case("heat-rod-two-ends")
ROLE = Sampling("playbook")


async def play(
    case: Case, folder: Path, mistakes: float, seed: int, statement: str = ""
) -> tuple[Course, Team]:
    statement = statement or case.statements[0].text
    knowledge = Knowledge.of_cases()
    toolkit = standard_toolkit()
    with Journal.open(folder) as journal:
        effects = RecordedEffects(
            journal, {"playbook": TeamPlaybook("playbook", knowledge, mistakes)}, Pool(toolkit, 30.0)
        )
        roles = {"planner": ROLE, "parser": ROLE, "solver": ROLE, "orchestrator": ROLE}
        team = Team(statement, toolkit, effects, roles, seed=seed)  # type: ignore[arg-type]
        return await prog_act(team), team


async def test_without_mistakes_every_step_is_right_at_once(tmp_path: Path) -> None:
    course, _ = await play(CASE, tmp_path / "run", 0.0, 0)
    assert course.ending == "solved", course.reason
    assert len(course.memory.records) == len(course.memory.plan.steps)
    findings = [finding for record in course.memory.records for finding in record.findings]
    assert {"refinement", "residual of the equations", "initial state"} <= {
        finding.name for finding in findings
    }
    assert all(finding.passed for finding in findings)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_mistakes_are_made_and_most_courses_still_end_well(tmp_path: Path, seed: int) -> None:
    course, _ = await play(CASE, tmp_path / "run", 0.2, seed)
    assert course.ending == "solved", course.reason


async def test_a_statement_that_is_not_known_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(ModelRefused, match="the playbook understands no language"):
        await play(CASE, tmp_path / "run", 0.0, 0, "Solve the heat equation.")


@pytest.mark.parametrize("name", ["rod-one-end", "backward-rod", "poisson-somewhere", "quenched-plate"])
async def test_what_cannot_be_solved_as_stated_is_asked_about_or_refused(tmp_path: Path, name: str) -> None:
    case = load_ill_posed(name)
    course, _ = await play(CASE, tmp_path / "run", 0.0, 0, case.statements[0].text)
    assert course.ending == {"ask": "asks", "refuse": "refused"}[case.verdict], course.reason
    assert bool(course.questions) == (case.verdict == "ask")
