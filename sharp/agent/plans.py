"""Plans: which tool is used in which step on the results of which others, checked whole before anything is run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sharp.agent.tools import Tool, Toolkit, ToolPort
from sharp.error_messages import describe, valid_values
from sharp.errors import ReplyError


@dataclass(frozen=True)
class OutputReference:
    """The result of a step at one of its output ports, written `{"ref": "s3.domain"}`."""

    step: str
    port: str

    def __str__(self) -> str:
        return f"{self.step}.{self.port}"


@dataclass(frozen=True)
class PlanStep:
    """One use of a tool: `inputs` says which results each input port takes, in order; `why` is the planner's reason.

    Ids are unique in a plan; the same tool may be used in many steps.
    """

    id: str
    tool: str
    inputs: Mapping[str, tuple[OutputReference, ...]] = field(default_factory=dict)
    why: str = ""

    @property
    def references(self) -> tuple[OutputReference, ...]:
        """All results that the step uses."""
        return tuple(reference for given in self.inputs.values() for reference in given)

    @property
    def wiring(self) -> dict[str, list[str]]:
        """The inputs in plain JSON."""
        return {port: [str(reference) for reference in given] for port, given in self.inputs.items()}


@dataclass(frozen=True)
class ToolPlan:
    """Steps in the order in which they are carried out."""

    steps: tuple[PlanStep, ...]

    def step(self, step_id: str) -> PlanStep:
        """Return the step of an id; raises KeyError."""
        return {step.id: step for step in self.steps}[step_id]

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of all steps in order."""
        return tuple(step.id for step in self.steps)


def read_plan(data: Any) -> ToolPlan:
    """Return the plan of a JSON value `[{"id", "tool", "inputs": {port: "s1.port" or a list}, "why"}, …]`.

    Raises `ReplyError`, whose sentence is for the model that wrote it.
    """
    if not isinstance(data, list) or not data:
        raise ReplyError(f"expected a list of steps, found {describe(data)}")
    return ToolPlan(tuple(_read_step(entry, number) for number, entry in enumerate(data, 1)))


# What planners add, though others choose it or the tool has it.
_SUPERFLUOUS = {"outputs", "output", "parameters", "params", "arguments", "owner", "depends_on"}


def _read_step(entry: Any, number: int) -> PlanStep:
    tool = entry.get("tool") if isinstance(entry, dict) else None
    if not isinstance(tool, str):
        raise ReplyError(f"step {number}: expected an object with a tool, found {describe(entry)}")
    # A key without a value says nothing, and words on a step change nothing of it.
    known = {"id", "tool", "inputs", "why"}
    unknown = sorted(
        key
        for key, value in entry.items()
        if key not in known | _SUPERFLUOUS and isinstance(value, list | dict) and value
    )
    if unknown:
        raise ReplyError(
            f"step {number}: unknown keys {', '.join(unknown)}; valid keys: id, tool, inputs, why"
        )
    step_id = str(entry.get("id", f"s{number}"))
    inputs = entry.get("inputs") or {}
    if isinstance(inputs, list) and all(isinstance(one, str) for one in inputs):
        inputs = {"": inputs}
    if isinstance(inputs, list) and all(
        isinstance(one, dict) and {"port", "from"} <= one.keys() for one in inputs
    ):
        inputs = {str(one["port"]): one["from"] for one in inputs}
    if not isinstance(inputs, dict):
        raise ReplyError(f"step {step_id}: expected inputs as an object of ports, found {describe(inputs)}")
    read = {
        str(port): tuple(read_references(given, f"step {step_id}, input {port}"))
        for port, given in inputs.items()
        if given not in (None, [])
    }
    return PlanStep(step_id, tool.strip("` ").removesuffix("()"), read, str(entry.get("why") or ""))


def completed(plan: ToolPlan, toolkit: Toolkit) -> ToolPlan:
    """Return a plan with tools, results and ports as they are called here, where a step can only mean one.

    A tool may be written in another case, a result as the step alone or as its "output", inputs without their ports.
    """
    steps = [replace(step, tool=_called(step.tool, toolkit)) for step in plan.steps]
    tools = {step.id: toolkit[step.tool] for step in steps if step.tool in toolkit}
    return ToolPlan(
        tuple(replace(step, inputs=_inputs(step, tools)) if step.id in tools else step for step in steps)
    )


def _inputs(step: PlanStep, tools: Mapping[str, Tool]) -> dict[str, tuple[OutputReference, ...]]:
    kinds = {port.name: port.kind for port in tools[step.id].inputs}
    found: dict[str, tuple[OutputReference, ...]] = {}
    for named, given in step.inputs.items():
        port = _called(named, kinds)
        for reference in given:
            reference = replace(reference, step=_called(reference.step, tools))
            source = tools.get(reference.step)
            wanted = {kinds[port]} if port in kinds else {*kinds.values()}
            outputs = source.outputs if source else ()
            if source and (reference.port in _ANY_RESULT and source.output(reference.port) is None):
                fitting = [each.name for each in outputs if each.kind in wanted]
                reference = replace(reference, port=fitting[0]) if len(fitting) == 1 else reference
            given_kind = next((each.kind for each in outputs if each.name == reference.port), None)
            taking = [name for name, kind in kinds.items() if kind == given_kind]
            place = taking[0] if not port and len(taking) == 1 else port
            found[place] = (*found.get(place, ()), reference)
    return found


# How a reference calls the only result of a step.
_ANY_RESULT = {"", "output", "result", "out", "outputs", "value"}


def _called(name: str, known: Iterable[str]) -> str:
    """Return the one of some names that is meant, written in another case, number, or with other signs."""
    alike = [each for each in known if each == name] or [each for each in known if _stem(each) == _stem(name)]
    return alike[0] if len(alike) == 1 else name


def _stem(name: str) -> str:
    return re.sub(r"[^a-z0-9]|s\Z", "", name.lower())


def read_references(given: Any, place: str) -> Iterator[OutputReference]:
    """Yield the references of a port: `"s3.domain"`, `{"ref": "s3.domain"}`, a list of such; raises `ReplyError`.

    A step alone is a reference without a port.
    """
    if isinstance(given, list):
        for entry in given:
            yield from read_references(entry, place)
    elif isinstance(given, dict) and len(given) == 1 and given.keys() <= {"ref", "from"}:
        yield from read_references(next(iter(given.values())), place)
    else:
        text = ".".join(map(str, given.values())) if _names_a_port(given) else given
        parts = re.split(r"\.|:|/|->|→", text.strip(" ${}<>`")) if isinstance(text, str) else []
        if not 1 <= len(parts) <= 2 or not all(re.fullmatch(r"[\w-]+", part) for part in parts):
            raise ReplyError(f'{place}: expected a result such as "s1.domain", found {describe(given)}')
        yield OutputReference(parts[0], parts[1] if len(parts) == 2 else "")


def _names_a_port(given: Any) -> bool:
    return isinstance(given, dict) and [*given] in (["step", "port"], ["step", "output"])


def check_plan(plan: ToolPlan, toolkit: Toolkit) -> tuple[str, ...]:
    """Return what is wrong with a plan, a sentence each: a plan without faults cannot fail for its wiring."""
    faults: list[str] = []
    known: dict[str, Tool] = {}
    for step in plan.steps:
        if step.id in known:
            faults.append(f"step {step.id}: the id is used twice; expected different ids")
        tool = toolkit.get(step.tool)
        if tool is None:
            valid = valid_values("tools", step.tool, toolkit)
            faults.append(f"step {step.id}: unknown tool '{step.tool}'; {valid}")
            continue
        faults += _wiring_faults(step, tool, known, plan)
        known[step.id] = tool
    return tuple(faults)


def _wiring_faults(step: PlanStep, tool: Tool, known: Mapping[str, Tool], plan: ToolPlan) -> Iterator[str]:
    ports = [port.name for port in tool.inputs]
    for name in step.inputs:
        if name not in ports:
            yield f"step {step.id}: '{tool.name}' has no input '{name}'; {valid_values('inputs', name, ports)}"
    for port in tool.inputs:
        given = step.inputs.get(port.name, ())
        place = f"step {step.id}, input {port.name}"
        if port.required and not given:
            yield f"{place}: expected a result of kind {port.kind}, found none"
        if len(given) > 1 and not port.many:
            yield f"{place}: expected one result, found {len(given)}"
        for reference in given:
            yield from _reference_faults(place, port, reference, known, plan)


def _reference_faults(
    place: str, port: ToolPort, reference: OutputReference, known: Mapping[str, Tool], plan: ToolPlan
) -> Iterator[str]:
    source = known.get(reference.step)
    if source is None:
        later = reference.step in plan.ids
        reason = "comes later or is faulty itself" if later else "is not in the plan"
        earlier = valid_values("earlier steps", reference.step, known)
        yield f"{place}: the step {reference.step} {reason}; {earlier}"
        return
    output = source.output(reference.port)
    if output is None:
        valid = valid_values("results", reference.port, [output.name for output in source.outputs])
        yield f"{place}: {reference.step} ('{source.name}') gives no '{reference.port}'; {valid}"
    elif output.kind != port.kind:
        yield f"{place}: expected kind {port.kind}, found {output.kind} ({reference})"
