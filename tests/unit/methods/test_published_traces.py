"""The published algorithms' calls, one after the other: roles, sampling, and what is fed back.

Every scripted reply has a mark of its own (`<place>`), so that a later call shows which of them it was given.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from sharp.llm.cards import load_card
from sharp.llm.protocol import ChatRequest
from tests.helpers.methods.played import played, roles, sampling
from tests.helpers.models.scripted import Cut, fenced, program

MARK = re.compile(r"«([^»]+)»")
USER = ["system", "user"]
DEBUG = [*USER, "assistant", "user"]
ONE: dict[str, Any] = {"genesis": {"candidates": 1}, "models": {"generator": "local"}}


def reply(path: str, _: ChatRequest) -> str:
    """A program whose mark is its place: the first two of each run fail, later ones are better and better."""
    order = [int(number) for number in re.findall(r"\d+", path)]
    crash = f"boom «{path}»" if ("code" in path and order[-1] <= 2) or path.endswith("debug-1") else None
    return f"Sketch «{path}».\n\n{fenced(program(1 / (1 + sum(order)), f'«{path}»', crash=crash))}"


def fed(request: ChatRequest) -> list[str]:
    """The places of the replies that a call is given, in the order in which they first appear."""
    text = "\n".join(message.content for message in request.messages)
    return list(dict.fromkeys(MARK.findall(text)))


async def trace(method: str, rules: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The calls of a method by place: roles, (temperature, tokens, answers), and what they were given."""
    _, effects = await played(method, rules, **options)
    return {path: (roles(call), sampling(call), fed(call)) for path, call in effects.chats.items()}


async def test_codepde_writes_once_and_debugs_in_the_same_conversation_up_to_four_times() -> None:
    """CodePDE, arXiv 2505.08783, section 3: reasoning and debugging; the conversation grows by program and error."""
    calls = await trace("codepde", {"": reply}, **ONE)
    wrote, again = "genesis/c001/code", "best-of-n/c001/debug-1"
    (usual,) = {sample for _, sample, _ in calls.values()}
    assert calls == {
        wrote: (USER, usual, []),
        again: (DEBUG, usual, [wrote]),
        "best-of-n/c001/debug-2": ([*DEBUG, "assistant", "user"], usual, [wrote, again]),
    }

    def broken(path: str, _: ChatRequest) -> str:
        return f"«{path}» {fenced(program(0.1, f'«{path}»', crash=f'boom {path}'))}"

    calls = await trace("codepde", {"": broken}, **ONE)
    assert [path.split("/")[-1] for path in calls] == ["code", *(f"debug-{n}" for n in (1, 2, 3, 4))]
    assert [len(given) for _, _, given in calls.values()] == [0, 1, 2, 3, 4]


async def test_chain_of_thought_with_reflection_is_one_call_whose_output_alone_goes_on() -> None:
    """OptiLLM's cot_reflection: temperature 0.6, 4,096 tokens, one call; what is debugged is the text in <output>."""

    def thought(path: str, _: ChatRequest) -> str:
        code = fenced(program(0.1, f"«{path}»", crash="boom" if path.endswith("code") else None))
        tags = "<thinking>«thought» <reflection>«reflected»</reflection></thinking>"
        return code if "debug" in path else f"{tags}\n<output>\n{code}</output>"

    calls = await trace("cot-reflection", {"": thought}, **ONE)
    wrote, again = "genesis/c001/code", "best-of-n/c001/debug-1"
    assert list(calls) == [wrote, again]
    assert calls[wrote] == (USER, (0.6, 4096, 1), [])
    assert (calls[again][0], calls[again][2]) == (DEBUG, [wrote])


async def test_aide_drafts_with_a_memory_debugs_one_program_and_improves_the_best() -> None:
    """AIDE (arXiv 2502.13138): every step is one call with a fresh prompt; a draft and an improvement are shown what
    ran by design and result, debugging its own program alone.
    """
    search = {"steps": 6, "drafts": 4, "debug_probability": 0.0}
    calls = await trace("aide", {"": reply}, aide=search)
    s = [f"search/s{number:03d}/code" for number in range(7)]
    assert list(calls) == s[1:]
    assert {(tuple(who), sample[0]) for who, sample, _ in calls.values()} == {(tuple(USER), 0.5)}
    # s001 and s002 fail: nobody is told of them. Improvements show the best program's code before the memory.
    assert [given for _, _, given in calls.values()] == [[], [], [], [s[3]], [s[4], s[3]], [s[5], s[3], s[4]]]
    calls = await trace("aide", {"": reply}, aide={**search, "steps": 5, "debug_probability": 1.0})
    assert calls[s[5]][2] in ([s[1]], [s[2]])


async def test_mixture_of_agents_is_three_calls_of_which_the_last_sees_all_and_the_critique() -> None:
    """OptiLLM's moa: three answers of one call at temperature 1, then a critique and a synthesis at 0.1."""
    answers = tuple(f"«{number}» {fenced(program(0.1))}" for number in (1, 2, 3))
    rules = {"proposals": answers, "critique": "«critique»", "synthesis": fenced(program(0.1))}
    calls = await trace("moa", rules, **ONE)
    place = "genesis/c001"
    assert calls == {
        f"{place}/proposals": (USER, (1.0, 4096, 3), []),
        f"{place}/critique": (USER, (0.1, 512, 1), ["1", "2", "3"]),
        f"{place}/synthesis": (USER, (0.1, 8192, 1), ["1", "2", "3", "critique"]),
    }


async def test_cepo_carries_out_plans_compares_and_concludes_before_answers_are_rated() -> None:
    """OptiLLM's cepo with the paper's parameters (Table 13), for the first of its three answers and the ratings."""

    def said(path: str, _: ChatRequest) -> str:
        if "rating" in path:
            return "«rating» Rating: [[5]]"
        mark = f"«{path.removeprefix('genesis/c001/')}»"
        return f"{mark} {fenced(program(0.1, mark))}" if path.endswith("final") else mark

    calls = await trace("cepo", {"": said}, **ONE)
    first = {
        path.split("answer-1/")[1]: (sample, [place.removeprefix("answer-1/") for place in given])
        for path, (_, sample, given) in calls.items()
        if "answer-1/" in path
    }
    plans = [f"attempt-{number}" for number in (1, 2, 3)]
    carried = [f"{name}/execution" for name in plans]
    assert list(first) == [f"{name}/{step}" for name in plans for step in ("plan", "execution")] + [
        "comparison",
        "final",
    ]
    for name in plans:
        assert first[f"{name}/plan"] == ((0.55, 4096, 1), [])
        assert first[f"{name}/execution"] == ((0.25, 4096, 1), [f"{name}/plan"])
    assert first["comparison"] == ((0.1, 4096, 1), carried)
    assert first["final"] == ((0.0, 4096, 1), ["comparison"])
    ratings = [given for path, (_, _, given) in calls.items() if "rating" in path]
    assert ratings == [[f"answer-{number}/final"] for number in (1, 2, 3)]


@pytest.mark.parametrize("method", ["codepde-refine", "funsearch"])
async def test_refinement_and_evolution_show_programs_and_start_afresh_with_every_call(method: str) -> None:
    """CodePDE-R: the best 3, 4 and 5, four times each. FunSearch: at most two of one island, worst first, at 0.7."""
    options = {"genesis": {"candidates": 6}} if method == "codepde-refine" else {"funsearch": {"initial": 6}}
    calls = await trace(method, {"": _better_and_better}, **options)
    found = [given for path, (who, _, given) in calls.items() if path.startswith("search/") and who == USER]
    if method == "codepde-refine":
        best = [f"genesis/c{number:03d}/code" for number in (6, 5, 4, 3, 2)]
        assert found == [best[:count] for count in (3, 4, 5) for _ in range(4)]
    else:
        assert len(found) == 32
        await _all_islands_begin_with_all_seeds()
        assert {len(given) for given in found} <= {1, 2}
        assert {sample[0] for path, (_, sample, _) in calls.items() if "search/" in path} == {0.7}


async def _all_islands_begin_with_all_seeds() -> None:
    """CodePDE registers every seed on every island: the first call on each is shown the best of all six."""
    state, _ = await played("funsearch", {"": _better_and_better}, funsearch={"initial": 6})
    first: dict[str, tuple[str, ...]] = {}
    for step in state.search:
        if step.move == "evolve":
            first.setdefault(step.note.split(" (")[0], step.parents)
    assert len(first) == 4
    assert all("c006" in shown for shown in first.values())


def _better_and_better(path: str, _: ChatRequest) -> str:
    number = int(re.findall(r"\d+", path)[0])
    return fenced(program(1 / number, f"«{path}»"))


async def test_what_the_limit_cut_off_goes_on_in_moa_and_counts_for_nothing_in_cepo() -> None:
    """OptiLLM of summer 2025: moa did not look at why an answer ended; cepo went on to the next of six attempts."""
    answers = (Cut("«1» The first"), "«2»", "«3»")
    rules: dict[str, Any] = {
        "proposals": answers,
        "critique": Cut("«critique» The"),
        "synthesis": fenced(program(0.1)),
    }
    calls = await trace("moa", rules, **ONE)
    assert [given for _, _, given in calls.values()] == [[], ["1", "2", "3"], ["1", "2", "3", "critique"]]

    def said(path: str, _: ChatRequest) -> Any:
        mark = f"«{path.removeprefix('genesis/c001/')}»"
        if path.endswith(("attempt-1/plan", "attempt-3/execution")):
            return Cut(mark)
        return f"{mark} Rating: [[1]] {fenced(program(0.1, mark)) if path.endswith('final') else ''}"

    calls = await trace("cepo", {"": said}, **ONE, cepo={"best_of": 1})
    made = [path.removeprefix("genesis/c001/answer-1/") for path in calls]
    steps = ("plan", "execution")
    assert made == [
        "attempt-1/plan",
        *(f"attempt-{number}/{step}" for number in (2, 3, 4, 5) for step in steps),
        "comparison",
        "final",
    ]
    compared = calls["genesis/c001/answer-1/comparison"][2]
    assert compared == [f"answer-1/attempt-{number}/execution" for number in (2, 4, 5)]


@pytest.mark.parametrize(
    ("method", "limits"),
    [("cot-reflection", {4096}), ("moa", {4096, 512, 8192}), ("cepo", {4096})],
)
async def test_published_limits_count_the_visible_answer_and_reasoning_has_its_own(
    method: str, limits: set[int]
) -> None:
    reasoning = load_card("o3").sampling.max_tokens
    reply = f"Rating: [[1]]\n<output>{fenced(program(0.1))}</output>"
    calls = await trace(method, {"": reply}, genesis={"candidates": 1}, models={"generator": "o3"})
    assert {tokens for _, (_, tokens, _), _ in calls.values()} == {limit + reasoning for limit in limits}
