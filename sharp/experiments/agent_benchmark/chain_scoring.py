"""How a trial got there: its tool chain and parameters against those that the case's specification takes.

Parameters and coefficients are judged by their effect: on both sides they are put into the expressions that use them,
so that `alpha*u_xx` and `0.1*u_xx` are the same where alpha is 0.1. What has other names than the case's (fields,
coordinates, an eigenvalue) is renamed in order. Titles, units and names of parameters are free.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from sharp.agent import GraphMemory, ToolChain, plans, reference_tool_chain
from sharp.errors import SpecificationError
from sharp.experiments.agent_benchmark.metrics.derivatives import rebuilt
from sharp.experiments.agent_benchmark.metrics.equivalence import Symbols
from sharp.experiments.agent_benchmark.metrics.graphs import ChainGraph, ExecutedToolCall, from_steps
from sharp.experiments.agent_benchmark.metrics.parameters import (
    Accuracy,
    EquationGold,
    ExactGold,
    ExpressionGold,
    Gold,
    ListGold,
    MappingGold,
    chain_accuracy,
)
from sharp.experiments.agent_benchmark.metrics.structure import score_chain
from sharp.problems import (
    Derivative,
    Name,
    Negative,
    Node,
    Number,
    Problem,
    Scope,
    parse_equation_tree,
    parse_tree,
    to_text,
)

# Few statements tell the solution; to do without it is no fault, and neither is to use it.
_FREE_TOOLS = frozenset({"define_reference_solution", "compare_with_reference"})
_FREE = frozenset(
    {
        "title",
        "units",
        "accuracy",
        "coordinates",
        "fields",
        "parameters",
        "coefficients",
        "definitions",
        "eigenvalue",
    }
)
# Words of the format, and names; everything else is an expression or an equation.
_WORDS = frozenset({"type", "method", "order"})
_NAMES = frozenset({"field", "axis"})

Told = Callable[[str], str]


@dataclass(frozen=True)
class ToolChainScore:
    """The figures of a tool chain in [0, 1] by name, and how many of its parameters are right."""

    figures: Mapping[str, float]
    parameters: Accuracy


@dataclass(frozen=True)
class AcceptedChain:
    """What a case accepts: its chain, with all that may be left out."""

    problem: Problem

    @cached_property
    def chain(self) -> ToolChain:
        """The chain; steps with the solution of the case are optional."""
        chain = reference_tool_chain(self.problem)
        free = {step.id for step in chain.plan.steps if step.tool in _FREE_TOOLS}
        return replace(chain, optional=chain.optional | free)

    @cached_property
    def graph(self) -> ChainGraph:
        """The tool-chain graph."""
        return from_steps(_steps(self.chain.plan.steps, self.chain.parameters), self.chain.optional)

    def process(self, memory: GraphMemory, found: Problem | None) -> ToolChainScore:
        """Score what has really run; `found` is the problem as it was understood, None where there is none."""
        told = translation(found or self.problem, self.problem)
        executed = executed_steps(memory, lambda name, value: in_words_of(told, name, value))
        nodes = zip(self.chain.plan.ids, self.graph.order, strict=True)
        gold = gold_of(self.problem, {node: self.chain.parameters[step] for step, node in nodes})
        accuracy = chain_accuracy(gold, executed, self.graph, symbols_of_case(self.problem))
        return ToolChainScore(score_chain(from_steps(executed), self.graph), accuracy)


def executed_steps(
    memory: GraphMemory, told: Callable[[str, Any], Any] = lambda _, value: value
) -> tuple[ExecutedToolCall, ...]:
    """Return the steps that have a sound result as things stand, in order; `told` translates literal parameters."""
    records = {step.id: memory.current(step.id) for step in memory.plan.steps}
    sound = [step for step in memory.plan.steps if (found := records[step.id]) and not found.failed]
    parameters = {
        step.id: {name: told(name, value) for name, value in memory.parameters[step.id].items()}
        for step in sound
    }
    return _steps(sound, parameters)


def _steps(
    steps: Iterable[plans.PlanStep], parameters: Mapping[str, Mapping[str, Any]]
) -> tuple[ExecutedToolCall, ...]:
    return tuple(
        ExecutedToolCall(step.id, step.tool, {**parameters[step.id], **_wiring(step.inputs)})
        for step in steps
    )


def _wiring(inputs: Mapping[str, Sequence[plans.OutputReference]]) -> dict[str, Any]:
    return {port: [{"ref": str(reference)} for reference in given] for port, given in inputs.items()}


def gold_of(problem: Problem, chain: Mapping[str, Mapping[str, Any]]) -> dict[str, MappingGold]:
    """Return the gold values of the literal parameters of a chain's nodes, given by node."""
    told = translation(problem, problem)
    return {
        node: MappingGold(
            {name: _gold(name, value, told) for name, value in given.items() if name not in _FREE}
        )
        for node, given in chain.items()
    }


def symbols_of_case(problem: Problem) -> Symbols:
    """Return what may occur once parameters and coefficients are put in."""
    times = {problem.time_name: problem.time} if problem.time_name and problem.time else {}
    eigenvalue = problem.specification.eigenvalue
    unknown = {eigenvalue.name: None} if eigenvalue else {}
    return Symbols(unknown, {**problem.bounds, **times}, problem.fields, problem.time_name)


def _gold(key: str, value: Any, told: Told) -> Gold:
    match value:
        case Mapping():
            return MappingGold({name: _gold(name, part, told) for name, part in value.items()})
        case list() | tuple():
            items = tuple(_gold(key, part, told) for part in value)
            return ListGold(items, ordered=key != "equations")
        case _ if _exact(key, value):
            return ExactGold(value)
        case str() if "=" in value:
            return EquationGold(told(value))
        case _:
            return ExpressionGold(told(str(value)))


def _exact(key: str, value: Any) -> bool:
    """Whether there is one way to write a value; a place such as `x = L` is an equation, `outer` is a word."""
    return key in _WORDS | _NAMES or (key == "where" and "=" not in value)


def in_words_of(told: Told, key: str, value: Any) -> Any:
    """Return a literal parameter of an executed step with its expressions and names translated."""
    match value:
        case Mapping():
            return {told(name): in_words_of(told, name, part) for name, part in value.items()}
        case list() | tuple():
            return [in_words_of(told, key, part) for part in value]
        case str() if key not in _WORDS:
            return told(value)
        case _:
            return value


@dataclass(frozen=True)
class _Translation:
    scope: Scope
    names: Mapping[str, Node]
    axes: Mapping[str, str]

    def __call__(self, text: str) -> str:
        """Return an expression or an equation in other words; what cannot be read stays as it is."""
        try:
            if "=" not in text:
                return to_text(self.node(parse_tree(text, self.scope)))
            equation = parse_equation_tree(text, self.scope)
        except SpecificationError:
            return text
        return f"{to_text(self.node(equation.left))} = {to_text(self.node(equation.right))}"

    def node(self, node: Node) -> Node:
        match node:
            case Name(name):
                return self.names.get(name, node)
            case Derivative(of, by):
                return Derivative(self.node(of), tuple(self.axes.get(name, name) for name in by))
            case _:
                return rebuilt(node, self.node)


def translation(found: Problem, case: Problem) -> Told:
    """Return what puts a text of one problem into the names of another, with numbers for its parameters."""
    spec = found.specification
    own, wanted = _names(found), _names(case)
    axes = {} if set(own) == set(wanted) else dict(zip(own, wanted, strict=False))
    numbers = {name: _number(value) for name, value in found.parameters.items()}
    coordinates = [*found.space, *([found.time_name] if found.time_name else [])]
    names = [*found.parameters, *spec.coefficients, *([spec.eigenvalue.name] if spec.eigenvalue else [])]
    plain = _Translation(
        Scope.of(names, found.fields, coordinates),
        {**{name: Name(other) for name, other in axes.items()}, **numbers},
        axes,
    )
    given = {
        name: plain.node(parse_tree(coefficient.expression, plain.scope))
        for name, coefficient in spec.coefficients.items()
        if coefficient.expression is not None
    }
    return _Translation(plain.scope, {**plain.names, **given}, axes)


def _names(problem: Problem) -> list[str]:
    """Return all names that stand for something unknown or a coordinate, in an order that two problems share."""
    eigenvalue = problem.specification.eigenvalue
    return [
        *([problem.time_name] if problem.time_name else []),
        *problem.space,
        *problem.fields,
        *([eigenvalue.name] if eigenvalue else []),
    ]


def _number(value: float) -> Node:
    return Negative(Number(-value)) if value < 0 else Number(value)
