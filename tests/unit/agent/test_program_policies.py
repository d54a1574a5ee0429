"""Policies that let a model write a program: what it is told, when it is asked again, and when it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from hpc.journal import Journal
from sharp.agent.effects import RecordedEffects, ResultStore
from sharp.agent.policies import ATTEMPTS, single_model, tool_generation
from sharp.agent.prog_act import SessionOutcome
from sharp.agent.programs.generated import run_program
from sharp.agent.team import AgentLimits, AgentTeam, SamplingParams
from sharp.agent.tools import toolkit_of
from sharp.llm.protocol import ChatBackend, ChatReply, ChatRequest, TokenUsage
from sharp.problems.cases import load_case
from sharp.rule_based.backend import RuleBasedBackend
from sharp.rule_based.collocation import program_answer
from sharp.solvers.exact import exact_errors

CASE = load_case("heat-wall-convection")
RIGHT = program_answer(CASE.problem)
BROKEN = RIGHT.replace("import numpy as np\n", "")
WRONG = RIGHT.replace("alpha = ", "alpha = 2 * ")


@dataclass
class Scripted:
    """A model that gives prepared answers in order, and remembers what it was told."""

    answers: Sequence[str]
    told: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.told.append(request)
        return ChatReply(
            (self.answers[len(self.told) - 1],), ("stop",), TokenUsage(prompt=1, completion=1), "scripted"
        )

    async def aclose(self) -> None:
        """Nothing is held open."""


async def play(
    policy: Callable[[AgentTeam], Any], folder: Path, model: ChatBackend
) -> tuple[SessionOutcome, AgentTeam, ResultStore]:
    toolkit = toolkit_of(run_program)
    pool = ResultStore(toolkit, 60.0)
    with Journal.open(folder) as journal:
        effects = RecordedEffects(journal, {"scripted": model}, pool)
        roles: Any = {"programmer": SamplingParams("scripted")}
        team = AgentTeam(CASE.statements[0].text, toolkit, effects, roles, AgentLimits(format_retries=1))
        return await policy(team), team, pool


async def value_of(course: SessionOutcome, pool: ResultStore) -> Any:
    record = course.memory.current("s1")
    assert record is not None
    return (await pool.value(f"{record.recipe.fingerprint}.solution")).solution


async def error_of(course: SessionOutcome, pool: ResultStore) -> float:
    errors = exact_errors(CASE.problem, await value_of(course, pool))
    assert errors is not None
    return errors.l2


async def test_a_program_that_runs_at_once_is_the_solution(tmp_path: Path) -> None:
    model = Scripted([RIGHT])
    course, team, pool = await play(tool_generation, tmp_path / "run", model)
    assert (course.ending, team.calls) == ("solved", 1)
    assert await error_of(course, pool) < 1e-8
    system, user = model.told[0].messages
    assert CASE.statements[0].text in user.content
    assert "numerical programs" in system.content


async def test_a_program_that_fails_is_written_again_with_its_error(tmp_path: Path) -> None:
    model = Scripted([BROKEN, RIGHT])
    course, _, _ = await play(tool_generation, tmp_path / "run", model)
    assert course.ending == "solved"
    assert [record.failed for record in course.memory.records] == [True, False]
    assert course.memory.version("s1") == 2
    second = model.told[1].messages[1].content
    assert "NameError: name 'np' is not defined" in second
    assert "from scipy.integrate import solve_ivp\n\nnp.seterr" in second
    assert CASE.statements[0].text in second


@pytest.mark.parametrize(("policy", "attempts"), [(tool_generation, ATTEMPTS), (single_model, 1)])
async def test_after_the_last_attempt_it_is_over(
    policy: Callable[[AgentTeam], Any], attempts: int, tmp_path: Path
) -> None:
    course, team, _ = await play(policy, tmp_path / "run", Scripted([BROKEN] * attempts))
    assert (course.ending, team.calls) == ("unsolved", attempts)
    assert course.reason.startswith(f"program {attempts} of {attempts} failed: run_program: NameError")


@pytest.mark.parametrize("policy", [tool_generation, single_model])
async def test_nobody_objects_to_wrong_mathematics_that_runs(
    policy: Callable[[AgentTeam], Any], tmp_path: Path
) -> None:
    course, team, pool = await play(policy, tmp_path / "run", Scripted([WRONG]))
    assert (course.ending, team.calls) == ("solved", 1)
    assert await error_of(course, pool) > 1e-2


@pytest.mark.parametrize("policy", [tool_generation, single_model])
async def test_who_asks_or_refuses_writes_no_program(
    policy: Callable[[AgentTeam], Any], tmp_path: Path
) -> None:
    asks = Scripted(['Open.\n```json\n{"ask_user": "How thick is the wall?"}\n```'])
    course, team, _ = await play(policy, tmp_path / "asks", asks)
    assert (course.ending, course.questions, team.calls) == (
        "needs_clarification",
        ("How thick is the wall?",),
        1,
    )
    course, _, _ = await play(policy, tmp_path / "refuses", Scripted(['{"reject": "Time runs backwards."}']))
    assert (course.ending, course.reason) == ("rejected", "Time runs backwards.")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("It is well known that u = 0.", "no JSON object"),
        (RIGHT.replace("def solve(", "def answer("), "defines `solve`"),
        (RIGHT.replace('"bounds": [[0.0, 1.0]]', '"bounds": [[0.0, "L"]]'), "bounds.0.1"),
    ],
)
async def test_an_answer_of_the_wrong_form_is_asked_for_once_more(
    answer: str, says: str, tmp_path: Path
) -> None:
    model = Scripted([answer, answer])
    course, team, _ = await play(single_model, tmp_path / "run", model)
    assert (course.ending, team.calls) == ("unsolved", 2)
    assert says in course.reason
    assert says in model.told[1].messages[-1].content


async def test_a_course_goes_on_from_its_record_and_makes_the_solution_again(tmp_path: Path) -> None:
    first, _, pool = await play(tool_generation, tmp_path / "run", Scripted([BROKEN, RIGHT]))
    again, _, other = await play(tool_generation, tmp_path / "run", Scripted([]))
    assert again == first
    points = np.array([[0.2], [0.9]])
    np.testing.assert_array_equal(
        (await value_of(first, pool)).at(points, 0.1), (await value_of(again, other)).at(points, 0.1)
    )


@pytest.mark.parametrize("policy", [single_model, tool_generation])
async def test_the_rule_based_model_writes_a_program(
    policy: Callable[[AgentTeam], Any], tmp_path: Path
) -> None:
    course, team, pool = await play(policy, tmp_path / "run", RuleBasedBackend("scripted"))
    assert (course.ending, team.calls) == ("solved", 1)
    assert await error_of(course, pool) < 1e-8


async def test_slips_of_the_rule_based_model_that_are_seen_are_mended_and_others_are_not(
    tmp_path: Path,
) -> None:
    # The first calls a function that is defined nowhere, which is told without running it.
    answers = [program_answer(CASE.problem, Random(seed)) for seed in (5, 4, 0)]
    course, _, pool = await play(tool_generation, tmp_path / "run", Scripted(answers))
    assert course.ending == "solved"
    assert [str(record.error).partition(":")[2].split(":")[0] for record in course.memory.records] == [
        " NameError",
        "",
    ]
    assert await error_of(course, pool) > 1e-2
