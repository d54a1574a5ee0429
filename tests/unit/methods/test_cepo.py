from __future__ import annotations

from typing import Any

import pytest

from sharp.tournament.state import Tournament
from tests.helpers.methods.played import headings, over, played, prompt, roles, sampling
from tests.helpers.models.scripted import Cut, ScriptedEffects, fenced, program

USUAL: dict[str, Any] = {
    r"/plan$": lambda path, _: f"Plan of {path}",
    r"/execution$": lambda path, _: f"Outcome of {path}",
    r"/comparison$": lambda path, _: f"Solution of {path}",
    r"answer-(\d+)/final$": lambda path, _: final(int(path.split("answer-")[1][0])),
    r"/rating-\d+$": "Looks right. Rating: [[1]]",
    r"/rating-\d+-\d+$": "A tie.",
}


def final(number: int) -> str:
    """Answer 1 has error 0.1, answer 2 error 0.2, and so on."""
    return fenced(program(number / 10, f"answer {number}"))


async def deliberated(
    rules: dict[str, Any] | None = None, **options: Any
) -> tuple[Tournament, ScriptedEffects]:
    one = {"genesis": {"candidates": 1}, "synthesis": {"repairs": 1}}
    return await played("cepo", over(USUAL, rules), **{**one, **options})


def asked(effects: ScriptedEffects) -> list[str]:
    return [path.removeprefix("genesis/c001/") for path in effects.chats]


def chosen(state: Tournament) -> str:
    return state.candidates["c001"].code.split("NAME = '")[1].split("'")[0]


async def test_a_program_takes_27_calls_one_after_the_other() -> None:
    _, effects = await deliberated(models={"generator": "local"})
    steps = [f"attempt-{number}/{step}" for number in (1, 2, 3) for step in ("plan", "execution")]
    answer = [*steps, "comparison", "final"]
    ratings = [f"rating-{number}" for number in (1, 2, 3)]
    assert asked(effects) == [f"answer-{n}/{step}" for n in (1, 2, 3) for step in answer] + ratings
    assert {(call.model, call.purpose) for call in effects.chats.values()} == {("local", "genesis")}
    assert len({call.seed for call in effects.chats.values()}) == 27
    assert effects.validations() == ["best-of-n/c001/validation"]


async def test_every_step_has_the_published_sampling() -> None:
    _, effects = await deliberated()
    found = {path.split("/")[-1]: sampling(call) for path, call in effects.chats.items()}
    assert found["plan"] == (0.55, 4096, 1)
    assert found["execution"] == (0.25, 4096, 1)
    assert found["comparison"] == (0.1, 4096, 1)
    assert found["final"] == (0.0, 4096, 1)
    assert found["rating-1"] == (0.1, 4096, 1)


async def test_the_options_say_how_often_and_how_is_sampled() -> None:
    options = {
        "best_of": 2,
        "plans": 1,
        "attempts": 1,
        "max_tokens": 99,
        "plan_temperature": 1.1,
        "execute_temperature": 1.2,
        "refine_temperature": 1.3,
        "final_temperature": 1.4,
        "rating_temperature": 1.5,
    }
    _, effects = await deliberated(cepo=options)
    temperatures = [call.temperature for call in effects.chats.values()]
    assert temperatures == [1.1, 1.2, 1.3, 1.4] * 2 + [1.5] * 2
    assert {call.max_tokens for call in effects.chats.values()} == {99}


async def test_what_each_step_is_told() -> None:
    _, effects = await deliberated(models={"generator": "local"})
    _, plain = await played("codepde", {r"/code$": final(1)}, genesis={"candidates": 1})
    system, question = plain.chats["genesis/c001/code"].messages
    plan, execution, comparison, answer, rating = (
        effects.chats[f"genesis/c001/{path}"]
        for path in (
            *("answer-2/attempt-3/plan", "answer-2/attempt-3/execution"),
            *("answer-2/comparison", "answer-2/final", "rating-2"),
        )
    )
    assert plan.messages[0] == system
    assert prompt(plan).count(question.content.strip()) == 2
    assert headings(plan)[-1] == "## Plan"
    assert execution.messages[:2] == plan.messages
    assert execution.messages[2].content == "Plan of genesis/c001/answer-2/attempt-3/plan"
    assert headings(execution) == ["## Carrying out the plan"]
    # The model meets its own attempts, and then its own solution, as what it said itself.
    assert roles(comparison) == roles(answer) == ["assistant", "user"]
    for later in (comparison, answer):
        assert prompt(later).startswith(question.content.strip())
    attempts = [f"Outcome of genesis/c001/answer-2/attempt-{number}/execution" for number in (1, 2, 3)]
    assert all(attempt in comparison.messages[0].content for attempt in attempts)
    assert headings(comparison)[-1] == "## Comparison of the attempts"
    assert answer.messages[0].content == "Solution of genesis/c001/answer-2/comparison"
    assert headings(answer)[-1] == "## Final answer"
    assert roles(rating) == ["system", "user", "assistant", "user"]
    assert rating.messages[0].content.startswith(system.content.strip())
    assert rating.messages[1] == question
    assert rating.messages[2].content == final(2).strip()
    assert headings(rating) == ["## Rating"]


async def test_where_a_server_wants_the_user_first_the_attempts_are_quoted() -> None:
    _, effects = await deliberated(models={"generator": "gemma-3-27b"})
    comparison, answer = (effects.chats[f"genesis/c001/answer-1/{step}"] for step in ("comparison", "final"))
    assert roles(comparison) == roles(answer) == ["user"]
    assert "Outcome of genesis/c001/answer-1/attempt-3/execution" in prompt(comparison)
    assert prompt(answer).startswith("Solution of genesis/c001/answer-1/comparison")


async def test_plans_are_attempted_until_there_are_enough_and_what_was_cut_off_does_not_count() -> None:
    rules = {
        r"answer-1/attempt-1/plan$": Cut("First,"),
        r"answer-1/attempt-[34]/execution$": Cut("Outcome that"),
    }
    _, effects = await deliberated(rules)
    attempts = {path.split("/")[1] for path in asked(effects) if path.startswith("answer-1/attempt")}
    assert attempts == {f"attempt-{number}" for number in range(1, 7)}
    assert "answer-1/attempt-1/execution" not in asked(effects)
    assert not [path for path in asked(effects) if path.startswith("answer-2/attempt-4")]
    said = effects.chats["genesis/c001/answer-1/comparison"].messages[0].content
    assert [n for n in range(1, 7) if f"attempt-{n}/execution" in said] == [2, 5, 6]


async def test_a_program_takes_45_calls_at_most() -> None:
    rules = {r"attempt-[1-5]/execution$": Cut("Outcome that")}
    state, effects = await deliberated(rules)
    assert len(effects.chats) == 45
    assert chosen(state) == "answer 1"


@pytest.mark.parametrize(
    ("last", "stands"),
    [
        ({r"answer-1/attempt-\d/execution$": Cut("Outcome that")}, "Outcome that"),
        ({r"answer-1/attempt-\d/plan$": Cut("First,")}, "First,"),
    ],
)
async def test_without_a_complete_attempt_the_last_one_stands(last: dict[str, Any], stands: str) -> None:
    _, effects = await deliberated(last)
    quoted = effects.chats["genesis/c001/answer-1/comparison"].messages[0].content
    assert quoted.count("### Attempt") == 1
    assert stands in quoted


async def test_the_comparison_is_used_as_it_came() -> None:
    _, effects = await deliberated({r"answer-1/comparison$": Cut("Solution that")})
    assert effects.chats["genesis/c001/answer-1/final"].messages[0].content == "Solution that"


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (("Rating: [[1]]", "Rating: [[1]]", "Rating: [[1]]"), "answer 1"),
        (("Rating: [[0]]", "Rating: [[1]]", "Rating: [[1]]"), "answer 2"),
        (("Rating: [[0]]", "Rating: [[0]]", "**Rating: [[1]]**"), "answer 3"),
        (("It is right.", "Rating: [[0]]", "Rating: [[0]]"), "answer 2"),
        (("It is right.", "Rating: 1", "Rating: [[7]]"), "answer 1"),
        (("`Rating: [[1]]` would be wrong. Rating: [[0]]", "**Rating:** [[ 1 ]]", ""), "answer 2"),
    ],
)
async def test_the_first_of_the_best_rated_answers_is_taken(said: tuple[str, ...], taken: str) -> None:
    rules = {rf"/rating-{number}$": text for number, text in enumerate(said, 1)}
    state, _ = await deliberated(rules)
    assert chosen(state) == taken


async def test_in_pairs_every_answer_meets_every_other_in_both_orders_and_wins_count() -> None:
    def better(path: str, _: object) -> str:
        """Answer 3 beats 2, and 2 beats 1, in whatever order they stand; 1 and 3 are not comparable."""
        first, second = map(int, path.rsplit("-", 2)[1:])
        if {first, second} == {1, 3}:
            return "I cannot say."
        return f"Rating: [[{'A' if first > second else 'B'}]]"

    state, effects = await deliberated({r"/rating-\d-\d$": better}, cepo={"rating": "pairwise"})
    pairs = [path for path in asked(effects) if path.startswith("rating")]
    assert pairs == [f"rating-{pair}" for pair in ("1-2", "1-3", "2-1", "2-3", "3-1", "3-2")]
    said = prompt(effects.chats["genesis/c001/rating-3-1"])
    assert said.index(program(0.3, "answer 3")) < said.index(program(0.1, "answer 1"))
    assert headings(effects.chats["genesis/c001/rating-3-1"])[-1] == "## Pairwise rating"
    assert chosen(state) == "answer 3"


async def test_where_no_pair_can_be_read_the_first_answer_is_taken() -> None:
    state, effects = await deliberated(cepo={"rating": "pairwise"})
    assert len(effects.chats) == 24 + 6
    assert chosen(state) == "answer 1"


async def test_another_model_may_rate() -> None:
    _, effects = await deliberated(models={"generator": "local"}, cepo={"rating_model": "o3"})
    raters = {path: call.model for path, call in effects.chats.items() if call.model != "local"}
    assert raters == {f"genesis/c001/rating-{number}": "o3" for number in (1, 2, 3)}


async def test_a_single_answer_is_not_rated() -> None:
    state, effects = await deliberated(cepo={"best_of": 1})
    assert len(effects.chats) == 8
    assert chosen(state) == "answer 1"


async def test_an_answer_without_a_program_discards_it_and_the_others_go_on() -> None:
    rules = {r"c001/(answer-1/final|code/retry-1)$": "It is done."}
    state, effects = await deliberated(rules, genesis={"candidates": 2})
    assert "holds no program" in state.discarded["c001"]
    assert state.best == "c002"
    assert len(effects.chats) == 2 * 27 + 1


async def test_debugging_goes_on_from_question_and_answer_without_what_led_to_it() -> None:
    broken = fenced(program(0.1, crash="boom"))
    rules = {r"answer-1/final$": broken, r"debug-1$": fenced(program(0.05))}
    state, effects = await deliberated(rules)
    messages = effects.chats["best-of-n/c001/debug-1"].messages
    assert [message.role for message in messages] == ["system", "user", "assistant", "user"]
    assert messages[2].content == broken
    assert "## Plan" not in messages[1].content
    assert state.best == "c001d1"
