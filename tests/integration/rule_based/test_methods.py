"""Whole runs of the methods that PDE-SHARP is compared with: every prompt gets an answer of the agreed form."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sharp.llm.replies import extract_code
from sharp.methods import run_method
from sharp.methods.cot_reflection import output_of
from sharp.tournament.state import Tournament
from tests.helpers.rule_based.programs import PROBLEMS
from tests.helpers.rule_based.simulated import Simulation, simulate

METHODS: dict[str, dict[str, Any]] = {
    "codepde": {},
    "cot-reflection": {},
    "moa": {},
    "cepo": {},
    "cepo in pairs": {"cepo": {"rating": "pairwise", "plans": 2}},
    "codepde-refine": {},
    "funsearch": {"funsearch": {"initial": 3, "iterations": 8, "islands": 2}},
    "aide": {"aide": {"steps": 14, "drafts": 4}},
}
NO_PROGRAM = ("plan", "critique", "rating")


async def played(name: str, problem: str, seed: int) -> tuple[Tournament, Simulation]:
    options = {"genesis": {"candidates": 3}, **METHODS[name]}
    session, world = simulate(problem, seed=seed, floor=1e-9, method=name.split()[0], **options)
    return await run_method(session), world


@pytest.mark.parametrize("name", METHODS)
async def test_every_prompt_of_a_method_is_answered_in_the_agreed_form(name: str) -> None:
    for seed in (0, 1):
        problem = PROBLEMS[(list(METHODS).index(name) + seed) % 5]
        state, world = await played(name, problem, seed)
        assert state.best is not None
        assert not state.discarded
        for path, (_, reply) in world.chats.items():
            assert set(reply.finish_reasons) == {"stop"}, path
            for text in reply.texts:
                _check(path.rsplit("/", 1)[1], text)


def _check(step: str, text: str) -> None:
    assert "none of the tasks" not in text
    if step.startswith("rating"):
        assert len(re.findall(r"Rating: \[\[[01AB]\]\]", text)) == 1
    elif not step.startswith(NO_PROGRAM):
        assert "I write no solver" not in text
        assert extract_code(output_of(text))


async def test_searches_improve_on_the_programs_that_they_begin_with() -> None:
    gains = []
    for number, problem in enumerate(PROBLEMS * 2):
        name = ("codepde-refine", "funsearch", "aide")[number % 3]
        state, _ = await played(name, problem, number)
        first = min(
            e.metric for e in state.executions if _is_first(state, e.candidate) and e.split == "validation"
        )
        best = min(e.metric for e in state.executions if e.split == "validation")
        gains.append(first / best)
    assert sum(gain > 1.05 for gain in gains) >= 6, gains


def _is_first(state: Tournament, candidate: str) -> bool:
    drafts = {step.candidate for step in state.search if step.move == "draft"}
    return state.candidates[candidate].origin == "genesis" or candidate in drafts
