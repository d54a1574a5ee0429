"""Teams on problems that cannot be solved as they stand: questions, refusals, inventions, and fixed answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sharp.agent.memory import GraphMemory
from sharp.agent.plans import ToolPlan
from sharp.agent.prog_act import SessionOutcome
from sharp.agent.sessions import SessionResult
from sharp.agent.settings import AgentConfig
from sharp.experiments.agent_benchmark.benchmark_report import ill_posed_tables
from sharp.experiments.agent_benchmark.runner import outcome_of
from sharp.experiments.agent_benchmark.trials import IllPosedResult, TrialResult
from sharp.experiments.sweeps.plan import SweepPlan
from sharp.llm import TokenUsage
from sharp.problems import Problem, in_other_styles, load_ill_posed, load_problem
from sharp.rule_based.agents import known_case
from tests.helpers.experiments.benchmarks import carried_out, planned, trials_of

CASES = ["rod-one-end", "hadamard", "tension-not-told", "massless-rod"]


def ill_posed(plan: SweepPlan) -> list[IllPosedResult]:
    return [row for row in carried_out(plan) if isinstance(row, IllPosedResult)]


def test_a_team_that_misreads_nothing_asks_and_refuses_as_it_is_right_in_five_styles(tmp_path: Path) -> None:
    styles = ["plain", "words", "typos", "scrambled", "distracting"]
    plan = planned(tmp_path / "bench", CASES, ["prog-act"], styles=styles)
    trials = trials_of(plan)
    assert {trial.statement.style for trial in trials} == set(styles)
    rows = ill_posed(plan)
    assert [row.outcome for row in rows] == [row.expected for row in rows]
    first, by_style = ill_posed_tables([trials[0].arm], rows)
    assert [row[0] for row in first.rows] == ["prog-act", "who always asks", "who always refuses"]
    assert [row[-1] for row in first.rows] == ["100%", "50%", "50%"]
    assert {row[0] for row in by_style.rows} == set(styles)


def test_who_writes_programs_asks_and_refuses_too(tmp_path: Path) -> None:
    rows = ill_posed(planned(tmp_path / "bench", CASES, ["tool-generation", "single-model"]))
    assert [row.outcome for row in rows] == [row.expected for row in rows]
    assert {row.calls for row in rows} == {1}


def test_without_checkpoints_tools_object_and_agents_in_need_ask_the_user(tmp_path: Path) -> None:
    rows = ill_posed(planned(tmp_path / "bench", CASES, ["none"]))
    # Nobody refuses for an agent that is told by a tool that what was stated makes no sense: it asks.
    assert [row.outcome for row in rows] == ["question", "refusal", "question", "question"]
    assert "What else holds for u at x = 2?" in rows[0].reason


def test_who_always_does_the_same_is_marked_where_nobody_is_better(tmp_path: Path) -> None:
    plan = planned(tmp_path / "bench", CASES[:2], ["none"])
    rows = [replace(row, outcome="gave up") for row in ill_posed(plan)]
    table, *_ = ill_posed_tables([trials_of(plan)[0].arm], rows)
    assert [row[0] for row in table.rows] == ["none", "who always asks (wins)", "who always refuses (wins)"]


def ended(ending: str, problem: Problem | None) -> SessionResult:
    course = SessionOutcome(GraphMemory(ToolPlan(())), ending)  # type: ignore[arg-type]
    return SessionResult(Path(), AgentConfig("A statement."), course, problem, None, 0, TokenUsage())


@pytest.mark.parametrize(
    ("ending", "problem", "outcome"),
    [
        ("needs_clarification", None, "question"),
        ("rejected", None, "refusal"),
        ("unsolved", None, "gave up"),
        ("solved", None, "solved wrongly"),
        ("solved", "heat-rod-two-ends", "invented"),
    ],
)
def test_what_a_team_did_is_told_by_its_end_and_what_it_understood(
    ending: str, problem: str | None, outcome: str
) -> None:
    assert outcome_of(ended(ending, load_problem(problem) if problem else None)) == outcome


def test_other_styles_keep_numbers_and_formulas_and_are_known_to_the_rule_based_model() -> None:
    case = load_ill_posed("heated-bar-no-start")
    said = {each.style: each.text for each in in_other_styles(case.statements)}
    assert said.keys() == {"words", "plain", "typos", "scrambled", "distracting"}
    first = case.statements[0].text
    assert sorted(said["scrambled"].split()) == sorted(first.split())
    assert first in said["distracting"]
    changed = [(a, b) for a, b in zip(first.split(), said["typos"].split(), strict=True) if a != b]
    assert changed
    assert all(a.strip(".,;").isalpha() and sorted(a) == sorted(b) for a, b in changed)
    assert all(known_case(text).document is not None for text in said.values())


def test_readings_of_one_passage_go_wrong_together_and_nobody_errs_without_a_rate() -> None:
    import random

    from sharp.rule_based.agents import StatementReading

    known = known_case(load_ill_posed("hadamard").statements[0].text)

    def readings(rate: float, passage: int) -> list[bool]:
        rng = random.Random(passage)
        return [StatementReading(known, "a statement", rate, rng).slips(f"s{passage}") for _ in range(2)]

    pairs = [readings(0.2, passage) for passage in range(4000)]
    both = sum(a and b for a, b in pairs) / len(pairs)
    alone = sum(a for a, _ in pairs) / len(pairs)
    assert alone == pytest.approx(0.2, abs=0.03)
    # Independent readings would both be wrong in a share of 0.04; a correlation of 0.3 makes it 0.04 + 0.3*0.16.
    assert both == pytest.approx(0.088, abs=0.02)
    assert not any(any(readings(0.0, passage)) for passage in range(50))


def test_a_reading_differs_only_where_it_slips() -> None:
    import random

    from sharp.rule_based.agents import StatementReading

    known = known_case(load_ill_posed("hadamard").statements[0].text)
    step = known.chain.plan.steps[0]
    right = known.chain.parameters[step.id]
    sure = StatementReading(known, "a statement", 0.0, random.Random(0))
    assert sure.objection(step.id, step.tool, right) is None
    assert sure.objection(step.id, step.tool, {**right, "equations": ["u = 0"]}) == right
    unsure = replace(sure, error_rate=0.99)
    told = [unsure.objection(step.id, step.tool, {**right, "equations": ["u = 0"]}) for _ in range(40)]
    assert told.count(None) > 20, "where one slips, one mostly sees nothing"


@pytest.mark.parametrize("policy", ["tool-generation", "single-model"])
def test_a_program_is_scored_by_its_values_in_the_coordinates_of_the_case(
    tmp_path: Path, policy: str
) -> None:
    (row,) = carried_out(planned(tmp_path / "bench", ["heat-rod-two-ends"], [policy]))
    assert isinstance(row, TrialResult)
    assert row.solved, row.reason
    assert row.error is not None
    assert row.error < 1e-6
