"""What models are told in every prompt of every method, for shipped problems and others: nothing that does not hold."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest

from sharp.evaluation import Environment
from sharp.llm import ChatRequest
from sharp.methods.method import run_method
from sharp.problems import Problem, list_problems, load_problem, parse_problem
from tests.helpers.models.scripted import (
    ANALYSIS,
    ScriptedEffects,
    fenced,
    keep,
    patch,
    program,
    script,
    selection,
    session,
    verdict,
)

PLAIN = Environment("3.12.1", {"numpy": "2.1.0", "scipy": "1.14.1"}, dtypes={"u0": "float32"})
GPU = Environment("3.12.1", {"numpy": "2.1.0", "jax": "0.4.35", "torch": "2.5.0"}, "NVIDIA H200", 2)

_BOX = """
domain: {type: box, bounds: {x: [0, 1]}}
boundary: [{where: all, type: dirichlet, field: u, value: 0}]
"""
_PLANE = """
domain: {type: box, bounds: {x: [0, 2], y: [0, 1]}}
boundary: [{where: all, type: dirichlet, field: u, value: 0}]
"""
OWN: Mapping[str, str] = {
    "steady": "coordinates: {space: [x]}\nfields: [u]\nequations: ['-u_xx + u**3 = sin(pi*x)']" + _BOX,
    "without bounds": "coordinates: {space: [x], time: t}\nfields: [u]\nequations: ['u_t = u_xx - u**3']\n"
    "time: [0, 1]\ninitial: {u: sin(pi*x)}" + _BOX,
    "system": "coordinates: {space: [x], time: t}\nfields: [u, v]\ntime: [0, 1]\n"
    "equations: ['u_t = u_xx + u - u**3 - v', 'v_t = u - v']\ninitial: {u: sin(pi*x), v: '0'}" + _BOX,
    "plane": "coordinates: {space: [x, y], time: t}\nfields: [u]\nparameters: {k: 0.3}\n"
    "equations: ['u_t = k*u_xx + k*u_yy']\ntime: [0, 1]\ninitial: {u: sin(pi*x)*sin(pi*y)}" + _PLANE,
    "own interface": "coordinates: {space: [x], time: t}\nfields: [u]\nparameters: {a: 2.0}\n"
    "equations: ['u_t + a*u_x = 0.01*u_xx']\ntime: [0, 1]\ninitial: {u: sin(pi*x)}"
    + _BOX
    + "interface:\n  inputs: [{name: u0, field: u, shape: [batch, N]}]\n  coordinates: times\n  parameters: [a]\n"
    "  returns: [{name: u, field: u, shape: [batch, T+1, N]}]\n",
}
BRANCH = verdict(verdict="yes", solution="a formula", reason="it is so")
HYBRID = verdict(
    verdict="yes",
    reason="linear part",
    parts=[{"term": "diffusion", "treatment": "exact", "how": "by modes"}],
)
NOTHING = verdict(bounds=[], recommended=["implicit Euler"], stiff=True, reason="no limit")
RULES: dict[str, Any] = {
    r"^genesis/c001/code$": fenced(program(0.1, crash="boom")),
    r"^genesis/c\d+/(?!derive)": lambda path, _: fenced(program(int(path.split("/")[1][1:4]) / 10)),
    r"/derive": "The derivation.",
    r"debug-1$": fenced(program(0.1, crash="bang")),
    r"debug-2$": fenced(program(0.1)),
    r"criteria$": verdict(criteria=["phase error"]),
    r"select/judge-1$": selection(["c001", "c002"]),
    r"select/judge": lambda _, asked: selection(
        re.findall(r"### Candidate (\S+)", asked.messages[-1].content)[:2]
    ),
    r"cycle-1/round-2/judge-1": patch("c001d2", "ERROR = 0.1", "ERROR = 0.01"),
    r"cycle-1/round-2/judge-2(/retry-\d)?$": "I have no idea.",
    r"round-\d/judge": keep(),
    r"^search/s\d+": lambda path, _: fenced(program(int(path.split("/")[1][1:4]) / 100)),
    r"rating": "Rating: [[1]]",
}
SITUATIONS: Mapping[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "numerical": ({}, {}),
    "assigned": ({}, {"genesis": {"candidates": 9, "assignments": "plan", "smoke_run": True}}),
    "no bounds": ({r"analysis/stability": NOTHING}, {}),
    "hybrid, own criteria": ({r"analysis/hybrid": HYBRID}, {"synthesis": {"criteria": "self-generated"}}),
    "transformed": ({r"analysis/transformation": BRANCH}, {"synthesis": {"criteria": "fixed"}}),
    "analytical": ({r"analysis/analytical": BRANCH}, {}),
    "codepde": ({}, {"method": "codepde"}),
    "codepde-refine": ({}, {"method": "codepde-refine"}),
    "aide": ({}, {"method": "aide", "aide": {"steps": 6, "drafts": 2}}),
    "moa": ({}, {"method": "moa"}),
    "cepo": ({}, {"method": "cepo", "cepo": {"best_of": 1, "plans": 1, "attempts": 1}}),
    "cot-reflection": ({}, {"method": "cot-reflection"}),
}
SCORES = {"nrmse": "nRMSE", "residual": "PDE residual", "none": "Nothing but whether the program runs."}


@cache
def problem_called(name: str) -> Problem:
    return (
        parse_problem(f"pde_spec: 1\nid: own\ntitle: An equation\n{OWN[name]}", "own.yaml")
        if name in OWN
        else load_problem(name)
    )


async def told(
    problem: Problem, situation: str, environment: Environment = PLAIN, **more: Any
) -> dict[str, ChatRequest]:
    """Play a method with scripted answers, failures and all, and return what was asked at each place."""
    rules, options = SITUATIONS[situation]
    bound = verdict(bounds=[{"scheme": "explicit", "bound": "dx/2"}], recommended=["upwind"], stiff=False)
    rules = {**rules, r"analysis/stability": rules.get(r"analysis/stability", bound), **RULES}
    for name, reply in ANALYSIS.items():
        rules.setdefault(rf"analysis/{name}", reply)
    effects = ScriptedEffects(script(rules=rules))
    small = {"genesis": {"candidates": 3}, "evaluation": {"convergence_check": False, "validation": 7}}
    await run_method(session(effects, problem, environment, **{**small, **options, **more}))
    return effects.chats


def conversation(request: ChatRequest) -> str:
    return "\n".join(message.content for message in request.messages if message.role != "assistant")


@pytest.mark.parametrize("situation", SITUATIONS)
@pytest.mark.parametrize("name", [*list_problems(), *OWN])
async def test_every_prompt_says_where_programs_run_and_nothing_that_does_not_hold(
    name: str, situation: str
) -> None:
    problem = problem_called(name)
    asked = await told(problem, situation)
    assert len(asked) >= 4
    for path, request in asked.items():
        text = conversation(request)
        assert not re.search(r"\{\{|\{%|%\}|\bNone\b|\bUndefined\b", text), path
        assert "\n\n\n\n" not in text, path
        if "rating" not in path:
            assert "Python 3.12.1 with numpy 2.1.0, scipy 1.14.1, no other numerical library" in text, path
            assert f"may take {problem.limits.wall_s:g} s and {problem.limits.memory_mb} MB" in text, path
            assert ("its call has 7 samples" in text) == bool(problem.interface.inputs), path
            assert ("calls on a coarser grid" in text) == bool(problem.interface.inputs), path
            given = r"over the batch|any batch size|batch of samples|arbitrary .*data|Arrays are given|known only at"
            assert problem.interface.inputs or not re.search(given, text), path
        assert not re.search(r"\b(jax|torch|pytorch|numba|cupy)\b", text, re.IGNORECASE), path
        if problem.time is None:
            found = re.search(
                r"time step|sub-step|output times|\bdt=|initial (condition|state|data)|in time\b", text
            )
            assert not found, (path, found)
        assert "by the bounds above" not in text or "Bounds on the time step" in text, path
        assert not re.search(r"\b[chs]\d", "".join(re.findall(r"```json\n(.*?)```", text, re.DOTALL))), path


async def test_where_nothing_is_run_prompts_name_what_was_found_and_no_limits_of_runs() -> None:
    asked = await told(load_problem("burgers"), "numerical", synthesis={"execute": "never"})
    assert asked
    for path, request in asked.items():
        text = conversation(request)
        assert "with numpy 2.1.0, scipy 1.14.1" in text, path
        assert "No program is run here: programs are chosen by reading their code." in text, path
        assert not re.search(r"A run may take|short run", text, re.IGNORECASE), path


async def test_bounds_are_named_only_where_there_are_some_and_govern_time_steps_only_in_time() -> None:
    for name, in_time in (("burgers", True), ("darcy", False)):
        with_, without = [
            conversation((await told(load_problem(name), how))["genesis/c002/code"])
            for how in ("numerical", "no bounds")
        ]
        assert ("internal time steps by the bounds above" in with_) == in_time
        assert "`dx/2` [" in with_
        assert "Bounds" not in without


@pytest.mark.parametrize("kind", SCORES)
@pytest.mark.parametrize("situation", ["numerical", "codepde", "codepde-refine", "aide", "moa"])
async def test_the_score_is_called_by_its_name(situation: str, kind: str) -> None:
    asked = await told(load_problem("burgers"), situation, feedback={"metrics": [kind]})
    for path, request in asked.items():
        if path.startswith(("analysis", "reporter", "finalize")):
            continue
        text = conversation(request)
        authors = situation == "numerical" and (path.startswith("genesis") or "debug" in path)
        assert authors or SCORES[kind] in text, path
        assert kind == "nrmse" or "nRMSE" not in text, path


async def test_gpus_and_libraries_are_those_that_were_found() -> None:
    asked = await told(
        load_problem("burgers"), "numerical", GPU, evaluation={"x64": True, "shards": 4, "threads": 2}
    )
    text = conversation(asked["genesis/c002/code"])
    assert "with numpy 2.1.0, jax 0.4.35, torch 2.5.0, no other" in text
    assert "on 2 x NVIDIA H200 and 2 CPU threads" in text
    assert "its call has 25 samples" in text
    assert "JAX's 64-bit mode is on." in text


async def test_findings_come_with_their_reasoning_and_their_parts_one_by_one() -> None:
    text = conversation((await told(load_problem("burgers"), "hybrid, own criteria"))["genesis/c002/code"])
    assert (
        "- **hybrid**: verdict: yes\n  - term: diffusion; treatment: exact; how: by modes\n\n  Reasoning."
        in text
    )


async def test_who_repairs_sees_what_was_tried_and_what_came_of_it() -> None:
    asked = await told(load_problem("burgers"), "numerical")
    first, second = (conversation(asked[f"cycle-1/round-1/c001/debug-{number}"]) for number in (1, 2))
    assert "## Attempts so far" not in first
    assert "Keep the signature of `solver` and the method" in first
    assert "- `c001`: It failed (exception): boom" in second
    assert "- `c001d1`: A plan. It failed (exception): bang" in second


async def test_judges_see_repairs_checks_and_turns_left_and_are_offered_what_they_saw_and_what_ran() -> None:
    asked = await told(load_problem("burgers"), "numerical")
    text = asked["cycle-1/round-2/judge-3"].messages[-1].content
    assert "### c001d2 (judge 1, from c001d1)" in text
    assert "- `c001d1`: A plan. It failed (exception): bang" in text
    assert "You have 3 turns left in this cycle, this one included." in text
    bases = re.search(r"one of: (.*)\.$", text, re.MULTILINE)
    assert bases is not None
    assert not {"c001", "c001d1"} & {*bases[1].split(", ")}
    assert "c001d2" in bases[1]


async def test_an_answer_that_cannot_be_read_is_not_called_a_patch() -> None:
    asked = await told(load_problem("burgers"), "numerical")
    text = asked["cycle-1/round-2/judge-2/retry-1"].messages[-1].content
    assert text.startswith("Your answer could not be read, and nothing was changed.")


async def test_bounds_in_other_names_are_sent_back_once_with_those_that_there_are() -> None:
    wrong = verdict(bounds=[{"scheme": "explicit", "bound": "dx/c_sound"}], recommended=[], stiff=False)
    effects = ScriptedEffects(script(rules={r"analysis/stability": wrong, **ANALYSIS_RULES, **RULES}))
    found = Environment("3.12.1", {}, largest={"u0_batch": 1.5}, smallest={"u0_batch": -1.0})
    state = await run_method(session(effects, "burgers", found, genesis={"candidates": 2}))
    again = effects.chats["analysis/stability/retry-1"].messages[-1].content
    assert "`dx/c_sound` cannot be used" in again
    assert "dx, N, u_max, u_min, nu" in again
    assert "analysis/stability/retry-2" not in effects.chats
    assert state.analysis is not None
    assert [bound.value for bound in state.analysis.bounds] == [None]
    assert "dx/c_sound" not in conversation(effects.chats["genesis/c002/code"])


async def test_bounds_have_values_from_what_solvers_are_given() -> None:
    bound = verdict(bounds=[{"scheme": "upwind", "bound": "0.5*dx/u_max"}], recommended=[], stiff=False)
    effects = ScriptedEffects(script(rules={r"analysis/stability": bound, **ANALYSIS_RULES, **RULES}))
    found = Environment("3.12.1", {}, largest={"u0_batch": 2.0}, smallest={"u0_batch": -2.0})
    await run_method(session(effects, "burgers", found, genesis={"candidates": 2}))
    dx = load_problem("burgers").spacing["x"]
    assert f"`0.5*dx/u_max` [{0.25 * dx:.3g}]" in conversation(effects.chats["genesis/c002/code"])


async def test_the_reporter_knows_how_the_run_ended_and_figures_of_its_own_are_named() -> None:
    prose = json.dumps(
        {
            "summary": "The error is 2.0e-3, or $1.0 \\\\times 10^{-2}$ on validation data, 3.7 times less.",
            "findings": ["It fell to 5.00e-03."],
            "efficiency": "About 1.2 s.",
            "conclusions": "Good.",
        }
    )
    rules = {r"^reporter/summary$": f"```json\n{prose}\n```", **ANALYSIS_RULES, **RULES}
    effects = ScriptedEffects(script(rules=rules))
    state = await run_method(
        session(effects, "burgers", PLAIN, genesis={"candidates": 3}, feedback={"run_times": "measured"})
    )
    text = effects.chats["reporter/summary"].messages[-1].content
    assert "- Test data, opened once at the end: nRMSE against the data 1.000e-02" in text
    assert "- Order of accuracy: 2.00" in text
    assert "- Programs that failed: 2 of " in text
    assert state.prose is not None
    assert state.prose.unfounded == ("2.0e-3", "3.7", "1.2")


ANALYSIS_RULES = {
    rf"analysis/{name}(/retry-1)?$": reply for name, reply in ANALYSIS.items() if name != "stability"
}
