"""Graph memory: what is stale follows from what was changed, and exactly that is done again."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sharp.agent.effects import ResultStore
from sharp.agent.memory import GraphMemory, ToolRecord
from sharp.agent.plans import OutputReference, PlanStep, ToolPlan, read_plan
from sharp.agent.tools import ToolContext, ToolError, ToolResult
from tests.helpers.agent.arithmetic_tools import TOOLS

PLAN = read_plan(
    [
        {"id": "a", "tool": "give_number"},
        {"id": "b", "tool": "give_number"},
        {"id": "sum", "tool": "add", "inputs": {"terms": ["a.number", "b.number"]}},
        {"id": "root", "tool": "square_root", "inputs": {"number": "sum.number"}},
        {"id": "other", "tool": "square_root", "inputs": {"number": "b.number"}},
    ]
)
CHOSEN = {"a": {"value": 7}, "b": {"value": 9}, "sum": {}, "root": {}, "other": {}}


def now(pending: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine gives that has nothing to wait for."""
    try:
        pending.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("these tools compute at once")


def chosen() -> GraphMemory:
    memory = GraphMemory(PLAN)
    for step, parameters in CHOSEN.items():
        memory = memory.choose(step, parameters)
    return memory


def open_steps(memory: GraphMemory) -> tuple[str, ...]:
    """Return the steps without a sound result as things stand, in the order of the plan."""
    return tuple(step for step in memory.plan.ids if (found := memory.current(step)) is None or found.failed)


def run_open(memory: GraphMemory, pool: ResultStore) -> tuple[GraphMemory, list[str]]:
    """Carry out every open step that can be, as an executor does."""
    done = []
    for step in open_steps(memory):
        if memory.runnable(step):
            memory, done = memory.with_record(carried_out(memory, pool, step)), [*done, step]
    return memory, done


def carried_out(memory: GraphMemory, pool: ResultStore, step: str) -> ToolRecord:
    recipe = memory.recipes[step]
    try:
        outcome = now(pool.execute(recipe))
    except ToolError as error:
        return ToolRecord(step, recipe, error=str(error))
    return ToolRecord(step, recipe, outcome.summary, outcome.findings)


def finished() -> tuple[GraphMemory, ResultStore]:
    pool = ResultStore(TOOLS, 1.0)
    memory, done = run_open(chosen(), pool)
    assert done == ["a", "b", "sum", "root", "other"]
    return memory, pool


def test_a_finished_plan_has_nothing_stale_and_nothing_open() -> None:
    memory, pool = finished()
    assert open_steps(memory) == ()
    assert now(pool.value(f"{memory.recipes['root'].fingerprint}.root")) == 4.0


def test_a_changed_parameter_makes_exactly_what_follows_stale() -> None:
    memory, pool = finished()
    memory = memory.choose("a", {"value": 16})
    assert open_steps(memory) == ("a", "sum", "root")
    memory, done = run_open(memory, pool)
    assert done == ["a", "sum", "root"]
    assert now(pool.value(f"{memory.recipes['root'].fingerprint}.root")) == 5.0
    assert [memory.version(step) for step in PLAN.ids] == [2, 1, 2, 2, 1]


def test_a_parameter_that_is_changed_back_needs_nothing_to_be_done_again() -> None:
    memory, pool = finished()
    there, _ = run_open(memory.choose("a", {"value": 16}), pool)
    back = there.choose("a", {"value": 7})
    assert open_steps(back) == ()
    assert back.current("root") == memory.current("root")


def test_other_wiring_makes_what_follows_stale() -> None:
    memory, pool = finished()
    rewired = {"root": {"number": (OutputReference("a", "number"),)}}
    steps = (replace(step, inputs=rewired.get(step.id, step.inputs)) for step in PLAN.steps)
    memory = memory.revise(ToolPlan(tuple(steps)))
    assert open_steps(memory) == ("root",)
    memory, _ = run_open(memory, pool)
    assert ("a", "number", "root", "number") in set(memory.edges())


def test_a_failed_step_is_open_and_keeps_those_behind_it_from_running() -> None:
    memory, pool = finished()
    memory = memory.choose("a", {"value": -20})
    memory, done = run_open(memory, pool)
    assert done == ["a", "sum", "root"]
    failed = memory.current("root")
    assert failed is not None
    assert failed.error == "square_root: expected a number of at least 0, found -11"
    assert open_steps(memory) == ("root",)
    behind = memory.revise(
        ToolPlan(
            (*PLAN.steps, PlanStep("last", "square_root", {"number": (OutputReference("root", "check"),)}))
        )
    )
    assert not behind.choose("last", {}).runnable("last")


def test_a_revised_plan_keeps_what_it_has_in_common() -> None:
    memory, _ = finished()
    extra = PlanStep(
        "more", "add", {"terms": (OutputReference("sum", "number"), OutputReference("root", "check"))}
    )
    memory = memory.revise(ToolPlan((*PLAN.steps[:4], extra)))
    assert open_steps(memory) == ("more",)
    assert memory.choose("more", {}).runnable("more")


def test_a_step_without_parameters_leaves_those_behind_it_without_recipes() -> None:
    memory = GraphMemory(PLAN).choose("a", {"value": 1}).choose("sum", {}).choose("root", {})
    assert set(memory.recipes) == {"a"}
    assert memory.latest("a") is None


def test_another_process_makes_values_again_from_recipes() -> None:
    memory, pool = finished()
    other = ResultStore(TOOLS, 1.0)
    for step in PLAN.ids:
        other.register(memory.recipes[step])
    handle = f"{memory.recipes['root'].fingerprint}.root"
    assert now(other.value(handle)) == now(pool.value(handle)) == 4.0


@given(st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 3)), max_size=8))
def test_whatever_is_changed_the_values_are_those_of_a_fresh_run(changes: list[tuple[str, int]]) -> None:
    memory, pool = finished()
    for step, value in changes:
        memory, _ = run_open(memory.choose(step, {"value": value}), pool)
    fresh = chosen()
    for step in ("a", "b"):
        fresh = fresh.choose(step, memory.parameters[step])
    fresh, _ = run_open(fresh, ResultStore(TOOLS, 1.0))
    assert [memory.current(step) and memory.current(step).summary for step in PLAN.ids] == [  # type: ignore[union-attr]
        fresh.current(step) and fresh.current(step).summary  # type: ignore[union-attr]
        for step in PLAN.ids
    ]


async def test_a_tool_that_waits_for_others_is_waited_for() -> None:
    async def asked(call: ToolContext) -> ToolResult:
        await asyncio.sleep(0)
        return ToolResult({"number": call.parameters.value + 1}, {})

    slow = replace(TOOLS["give_number"], run=asked)
    pool = ResultStore({**TOOLS, "give_number": slow}, 1.0)
    for step in PLAN.ids:
        pool.register(chosen().recipes[step])
    assert await pool.value(f"{chosen().recipes['sum'].fingerprint}.number") == 18
