"""How a course got there: its tool chain and parameters against those that the case's specification takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sharp.agent import plans
from sharp.agent.chains import Chain, chain_of
from sharp.agent.memory import Memory
from sharp.agentbench.gold import gold_of, in_words_of, symbols_of_case, translation
from sharp.agentbench.metrics.chains import score_chain
from sharp.agentbench.metrics.graphs import ChainGraph, Step, from_steps
from sharp.agentbench.metrics.parameters import Accuracy, chain_accuracy
from sharp.problems.problem import Problem

# Few statements tell the solution; to do without it is no fault, and neither is to use it.
_FREE_TOOLS = frozenset({"define_reference_solution", "compare_with_reference"})


@dataclass(frozen=True)
class Process:
    """The figures of a tool chain in [0, 1] by name, and how many of its parameters are right."""

    figures: Mapping[str, float]
    parameters: Accuracy


@dataclass(frozen=True)
class Accepted:
    """What a case accepts: its chain, with all that may be left out."""

    problem: Problem

    @cached_property
    def chain(self) -> Chain:
        """The chain; steps with the solution of the case are optional."""
        chain = chain_of(self.problem)
        free = {step.id for step in chain.plan.steps if step.tool in _FREE_TOOLS}
        return replace(chain, optional=chain.optional | free)

    @cached_property
    def graph(self) -> ChainGraph:
        """The tool-chain graph."""
        return from_steps(_steps(self.chain.plan.steps, self.chain.parameters), self.chain.optional)

    def process(self, memory: Memory, found: Problem | None) -> Process:
        """Score what has really run; `found` is the problem as it was understood, None where there is none."""
        told = translation(found or self.problem, self.problem)
        executed = executed_steps(memory, lambda name, value: in_words_of(told, name, value))
        nodes = zip(self.chain.plan.ids, self.graph.order, strict=True)
        gold = gold_of(self.problem, {node: self.chain.parameters[step] for step, node in nodes})
        accuracy = chain_accuracy(gold, executed, self.graph, symbols_of_case(self.problem))
        return Process(score_chain(from_steps(executed), {"specified": self.graph}).figures(), accuracy)


def executed_steps(
    memory: Memory, told: Callable[[str, Any], Any] = lambda _, value: value
) -> tuple[Step, ...]:
    """Return the steps that have a sound result as things stand, in order; `told` translates literal parameters."""
    records = {step.id: memory.current(step.id) for step in memory.plan.steps}
    sound = [step for step in memory.plan.steps if (found := records[step.id]) and not found.failed]
    parameters = {
        step.id: {name: told(name, value) for name, value in memory.parameters[step.id].items()}
        for step in sound
    }
    return _steps(sound, parameters)


def _steps(steps: Iterable[plans.Step], parameters: Mapping[str, Mapping[str, Any]]) -> tuple[Step, ...]:
    return tuple(Step(step.id, step.tool, {**parameters[step.id], **_wiring(step.inputs)}) for step in steps)


def _wiring(inputs: Mapping[str, Sequence[plans.Reference]]) -> dict[str, Any]:
    return {port: [{"ref": str(reference)} for reference in given] for port, given in inputs.items()}
