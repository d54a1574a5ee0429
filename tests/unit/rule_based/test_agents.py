"""The team as the rule-based model plays it: sound without mistakes, and corrected where it makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpc.journal import Journal
from sharp.agent.effects import RecordedEffects
from sharp.agent.pool import ResultStore
from sharp.agent.prog_act import SessionOutcome, prog_act
from sharp.agent.team import AgentTeam, SamplingParams
from sharp.agent.toolkit import standard_toolkit
from sharp.errors import ModelRefused
from sharp.problems.cases import BenchmarkCase, load_case, load_ill_posed
from sharp.rule_based.backend import RuleBasedBackend

CASE = load_case("heat-rod-two-ends")
ROLE = SamplingParams("rule-based")


async def play(
    case: BenchmarkCase, folder: Path, mistakes: float, seed: int, statement: str = ""
) -> tuple[SessionOutcome, AgentTeam]:
    statement = statement or case.statements[0].text
    toolkit = standard_toolkit()
    with Journal.open(folder) as journal:
        effects = RecordedEffects(
            journal, {"rule-based": RuleBasedBackend("rule-based", mistakes)}, ResultStore(toolkit, 30.0)
        )
        roles = {"planner": ROLE, "parser": ROLE, "solver": ROLE, "orchestrator": ROLE}
        team = AgentTeam(statement, toolkit, effects, roles, seed=seed)  # type: ignore[arg-type]
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
    with pytest.raises(ModelRefused, match="understands no language"):
        await play(CASE, tmp_path / "run", 0.0, 0, "Solve the heat equation.")


@pytest.mark.parametrize("name", ["rod-one-end", "backward-rod", "poisson-somewhere", "quenched-plate"])
async def test_what_cannot_be_solved_as_stated_is_asked_about_or_refused(tmp_path: Path, name: str) -> None:
    case = load_ill_posed(name)
    course, _ = await play(CASE, tmp_path / "run", 0.0, 0, case.statements[0].text)
    assert course.ending == {"clarify": "needs_clarification", "reject": "rejected"}[case.verdict], (
        course.reason
    )
    assert bool(course.questions) == (case.verdict == "clarify")
