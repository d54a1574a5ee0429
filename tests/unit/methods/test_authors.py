"""Several models that write programs: in turn, or the more often the better their programs were."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

import pytest

from sharp.config import RunConfig
from sharp.llm.protocol import ChatRequest
from sharp.runs.directory import models_of
from sharp.runs.plan import prices_of
from sharp.tournament import SearchStep, Tournament
from sharp.tournament.authors import author_records, in_turn, next_author
from tests.helpers.methods.played import played
from tests.helpers.models.scripted import ScriptedEffects, fenced, program, session
from tests.unit.tournament.test_pde_sharp import play

TWO: dict[str, Any] = {"generators": ["rule-based", "local"]}
BANDIT: dict[str, Any] = {**TWO, "allocation": "thompson"}
SIZES: Mapping[str, dict[str, Any]] = {
    "aide": {"aide": {"steps": 40, "drafts": 4}},
    "funsearch": {"funsearch": {"initial": 4, "iterations": 36, "islands": 2}},
    "codepde-refine": {"genesis": {"candidates": 8}, "refine": {"parents": [2, 3], "generations": 20}},
}


def skilled(path: str, request: ChatRequest) -> str:
    """The model `local` writes a tenth of the other's error."""
    number = int(re.findall(r"\d+", path)[0])
    error = (1 + number / 1000) * (0.01 if request.model == "local" else 0.1)
    return fenced(program(error, f"scheme {path}"))


def steps(*results: tuple[str, float]) -> tuple[SearchStep, ...]:
    return tuple(SearchStep(n, "draft", (), f"s{n:03d}", m, "", a) for n, (a, m) in enumerate(results, 1))


def configured(**models: Any) -> RunConfig:
    return RunConfig.model_validate({"problem": "advection", "method": "aide", "models": models})


async def test_candidates_are_written_in_turn_and_repaired_by_their_author() -> None:
    more = {r"^genesis/c002/code$": fenced(program(0.2, crash="boom")), r"debug-1$": fenced(program(0.2))}
    state, effects = await play(more, models=TWO)
    written = {name: c.author for name, c in state.candidates.items() if c.origin == "genesis"}
    assert written == {"c001": "rule-based", "c002": "local", "c003": "rule-based", "c004": "local"}
    assert {p: r.model for p, r in effects.chats.items() if p.startswith("genesis")} == {
        f"genesis/{name}/code": author for name, author in written.items()
    }
    assert effects.chats["cycle-1/round-1/c002/debug-1"].model == "local"


@pytest.mark.parametrize("method", SIZES)
async def test_a_bandit_asks_the_better_model_more_often(method: str) -> None:
    counts = {}
    for allocation in ("in-turn", "thompson"):
        models = {**TWO, "allocation": allocation}
        state, effects = await played(method, {r"": skilled}, models=models, **SIZES[method])
        asked = Counter(r.model for p, r in effects.chats.items() if p.startswith("search/"))
        assert asked == Counter(step.author for step in state.search if step.author)
        counts[allocation] = asked
    assert abs(counts["in-turn"]["local"] - counts["in-turn"]["rule-based"]) <= 1
    assert counts["thompson"]["local"] > 2 * counts["thompson"]["rule-based"]


async def test_debugging_stays_with_the_author_of_a_program() -> None:
    def write(path: str, _: ChatRequest) -> str:
        return fenced(program(0.1, path, crash=None if "debug" in path else "boom"))

    _, effects = await played("codepde", {r"": write}, models=TWO, genesis={"candidates": 4})
    assert {p.split("/")[1]: r.model for p, r in effects.chats.items() if "debug" in p} == {
        "c001": "rule-based",
        "c002": "local",
        "c003": "rule-based",
        "c004": "local",
    }


async def test_every_call_for_a_program_goes_to_its_author() -> None:
    answer = {r"": lambda path, request: (fenced(program(0.1, path)),) * request.n}
    _, effects = await played("moa", answer, models=TWO, genesis={"candidates": 2})
    models = {(p.split("/")[1], r.model) for p, r in effects.chats.items() if p.startswith("genesis")}
    assert models == {("c001", "rule-based"), ("c002", "local")}


def test_a_success_is_a_program_among_the_better_half_and_a_lost_reply_is_none() -> None:
    config = configured(**BANDIT)
    results = (("local", 0.1), ("local", 0.2), ("rule-based", 0.3), ("rule-based", inf), ("local", 0.4))
    state = Tournament("p", search=steps(*results), discarded={"s004": "no program"})
    first, second = author_records(config, state)
    assert (first.model, first.tried, first.ran, first.successes, first.best) == ("rule-based", 2, 1, 0, 0.3)
    assert (second.model, second.tried, second.ran, second.successes, second.best) == ("local", 3, 3, 2, 0.1)


def test_lost_replies_of_genesis_count_for_whose_turn_it_was() -> None:
    config = configured(**BANDIT)
    _, second = author_records(
        config, Tournament("p", discarded={"c002": "none", "c004": "none", "s001": "none"})
    )
    assert (second.model, second.tried, second.successes) == ("local", 2, 0)


def test_the_choice_is_a_function_of_seed_number_and_results() -> None:
    effects = ScriptedEffects(lambda *_: "")
    run = session(effects, method="aide", models=BANDIT)
    state = Tournament("p", search=steps(*(("local", 0.1), ("rule-based", 0.3)) * 2))
    chosen = [next_author(run, state, number) for number in range(1, 60)]
    assert chosen == [next_author(run, state, number) for number in range(1, 60)]
    assert {*chosen} == {"local", "rule-based"}
    other = replace(run, config=run.config.model_copy(update={"seed": 1}))
    assert chosen != [next_author(other, state, number) for number in range(1, 60)]


def test_one_model_writes_everything_by_default() -> None:
    config = RunConfig.model_validate({"problem": "advection", "models": {"generator": "local"}})
    assert {in_turn(config, number) for number in range(1, 9)} == {"local"}


def test_all_authors_are_loaded_and_priced() -> None:
    config = RunConfig.model_validate({"problem": "advection", "method": "codepde", "models": TWO})
    assert models_of(config) == ["local", "rule-based"]
    run = session(ScriptedEffects(lambda *_: ""), method="codepde", models=TWO)
    assert len(prices_of(config, run.cards)["genesis"]) == 2
