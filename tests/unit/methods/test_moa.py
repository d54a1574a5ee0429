from __future__ import annotations

from typing import Any

from sharp.tournament.state import Tournament
from tests.helpers.methods.played import headings, over, played, prompt, roles, sampling
from tests.helpers.models.scripted import Cut, ScriptedEffects, fenced, program

FIRST, SECOND, THIRD = (fenced(program(error, f"of proposal {error}")) for error in (0.1, 0.2, 0.3))
BEST = fenced(program(0.01, "of the synthesis"))


async def mixed(rules: dict[str, Any] | None = None, **options: Any) -> tuple[Tournament, ScriptedEffects]:
    usual = {
        r"/proposals$": (FIRST, SECOND, THIRD),
        r"/critique$": "The second is too diffusive.",
        r"/synthesis$": BEST,
    }
    one = {"genesis": {"candidates": 1}, "synthesis": {"repairs": 1}}
    return await played("moa", over(usual, rules), **{**one, **options})


def answers(text: str) -> list[str]:
    """The answers that a prompt quotes."""
    quoted = text.split("## Answers\n")[1].split("### Critique")[0].split("## Critique")[0]
    return [part.split("\n", 1)[1].strip() for part in quoted.split("### Answer ")[1:]]


async def test_a_program_takes_three_calls_with_the_published_sampling() -> None:
    state, effects = await mixed(models={"generator": "local"})
    asked = {path.removeprefix("genesis/c001/"): sampling(call) for path, call in effects.chats.items()}
    assert asked == {"proposals": (1.0, 4096, 3), "critique": (0.1, 512, 1), "synthesis": (0.1, 8192, 1)}
    assert {(call.model, call.purpose) for call in effects.chats.values()} == {("local", "genesis")}
    assert state.candidates["c001"].code == program(0.01, "of the synthesis")
    assert effects.validations() == ["best-of-n/c001/validation"]


async def test_critique_and_synthesis_see_the_question_and_all_answers_and_the_synthesis_the_critique() -> (
    None
):
    _, effects = await mixed()
    first, critique, synthesis = effects.chats.values()
    for later in (critique, synthesis):
        assert roles(later) == ["system", "user"]
        assert later.messages[0] == first.messages[0]
        assert prompt(later).startswith(prompt(first).strip())
        assert answers(prompt(later)) == [FIRST.strip(), SECOND.strip(), THIRD.strip()]
    assert headings(critique)[-1] == "## Critique of the answers"
    assert headings(synthesis)[-1] == "## Synthesis of the answers"
    assert "The second is too diffusive." in prompt(synthesis)


async def test_several_programs_are_made_apart_from_each_other() -> None:
    state, effects = await mixed(genesis={"candidates": 3})
    assert len(effects.chats) == 9
    assert len(state.candidates) == 3
    assert len({call.seed for call in effects.chats.values()}) == 9


async def test_the_options_say_how_many_proposals_there_are_and_how_they_are_sampled() -> None:
    options = {
        "proposals": 2,
        "temperature": 0.9,
        "max_tokens": 100,
        "critique_temperature": 0.3,
        "critique_tokens": 200,
        "synthesis_temperature": 0.4,
        "synthesis_tokens": 300,
    }
    _, effects = await mixed({r"/proposals$": (FIRST, SECOND)}, moa=options)
    assert list(map(sampling, effects.chats.values())) == [(0.9, 100, 2), (0.3, 200, 1), (0.4, 300, 1)]
    assert len(answers(prompt(effects.chats["genesis/c001/critique"]))) == 2


async def test_proposals_that_do_not_come_at_once_are_asked_for_one_by_one() -> None:
    rules = {r"/proposals$": FIRST, r"/proposals/2$": SECOND, r"/proposals/3$": THIRD}
    _, effects = await mixed(rules)
    asked = [path.removeprefix("genesis/c001/") for path in effects.chats]
    assert asked == ["proposals", "proposals/2", "proposals/3", "critique", "synthesis"]
    assert sampling(effects.chats["genesis/c001/proposals/2"]) == (1.0, 4096, 1)
    first, second = (effects.chats[f"genesis/c001/proposals{part}"] for part in ("", "/2"))
    assert first.messages == second.messages
    assert first.seed != second.seed
    assert answers(prompt(effects.chats["genesis/c001/critique"])) == [
        text.strip() for text in (FIRST, SECOND, THIRD)
    ]


async def test_answers_are_used_as_they_came_cut_off_or_not() -> None:
    """OptiLLM of the paper's time did not look at why an answer ended."""
    rules = {r"/proposals$": (Cut(FIRST), "", THIRD), r"/critique$": Cut("The first is")}
    state, effects = await mixed(rules)
    assert len(effects.chats) == 3
    said = prompt(effects.chats["genesis/c001/synthesis"])
    assert answers(said) == [FIRST.strip(), "…", THIRD.strip()]
    assert said.split("### Critique")[1].split("##")[0].strip() == "The first is"
    assert state.candidates["c001"].code == program(0.01, "of the synthesis")


async def test_only_the_answer_of_a_reasoning_model_counts_against_the_published_limits() -> None:
    thought = "<think>" + "long " * 20_000 + "</think>The first is diffusive. " + "word " * 2_000
    _, effects = await mixed({r"/critique$": thought}, models={"generator": "o3"})
    assert [call.max_tokens for call in effects.chats.values()] == [4096 + 32768, 512 + 32768, 8192 + 32768]
    critique = prompt(effects.chats["genesis/c001/synthesis"]).split("### Critique")[1].split("##")[0].strip()
    assert critique.startswith("The first is diffusive.")
    assert "long" not in critique
    assert 500 < len(critique) / 3.5 <= 512


async def test_a_synthesis_without_a_program_discards_it_and_the_others_go_on() -> None:
    state, _ = await mixed(
        {r"c001/(synthesis|code/retry-1)$": "All three are fine."}, genesis={"candidates": 2}
    )
    assert "holds no program" in state.discarded["c001"]
    assert state.best == "c002"


async def test_debugging_goes_on_from_question_and_answer_without_what_led_to_it() -> None:
    broken = fenced(program(0.1, crash="boom"))
    rules = {r"/synthesis$": broken, r"debug-1$": fenced(program(0.05))}
    state, effects = await mixed(rules)
    asked = effects.chats["best-of-n/c001/debug-1"].messages
    assert asked[:2] == effects.chats["genesis/c001/proposals"].messages
    assert asked[2].content == broken
    assert len(asked) == 4
    assert state.best == "c001d1"


async def test_in_a_short_context_the_last_answers_make_way_and_the_prompt_says_so() -> None:
    long = FIRST + "word " * 12_000
    _, effects = await mixed({r"/proposals$": (long, long, long)}, models={"generator": "local"})
    said = prompt(effects.chats["genesis/c001/synthesis"])
    assert "answer-3 is left out here" in said
    assert said.count("### Answer") < 3
