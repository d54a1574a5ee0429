"""Graph memory: a typed directed graph of steps and data, and what in it is stale.

A result is named by *what made it*: the tool, its literal parameters, and the names of the results that it used, hashed
together (as derivations are in E. Dolstra, The Purely Functional Software Deployment Model, 2006). Whoever changes a
parameter or the wiring of a step changes the names of everything that follows from it and of nothing else. So staleness
need not be marked and cannot be forgotten: a step is stale where the record of it bears another name than it would
have now, and taint spreads along the edges by itself.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from sharp.agent.plans import PlanStep, ToolPlan
from sharp.agent.tools import CheckResult


@dataclass(frozen=True)
class ToolInvocation:
    """What makes a result, and makes it again anywhere: the tool, literals, and the names of the results used."""

    tool: str
    parameters: Mapping[str, Any]
    inputs: Mapping[str, tuple[str, ...]]

    @cached_property
    def fingerprint(self) -> str:
        """The first 16 hexadecimal digits of the SHA-256 of the recipe."""
        content = [self.tool, self.parameters, {port: list(names) for port, names in self.inputs.items()}]
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class ToolRecord:
    """One time that a step was carried out: what made it, what agents are told of it, or the error it ended with."""

    step: str
    recipe: ToolInvocation
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[CheckResult, ...] = ()
    error: str | None = None
    seconds: float = 0.0

    @property
    def failed(self) -> bool:
        """Whether there is no result."""
        return self.error is not None


@dataclass(frozen=True)
class GraphMemory:
    """The plan, the literal parameters that agents have chosen for its steps, and every record there ever was.

    Immutable: each change is a new memory. `records` is in the order of execution; nothing is ever deleted. `notes` are
    what went wrong and what was advised, in order.
    """

    plan: ToolPlan
    parameters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    records: tuple[ToolRecord, ...] = ()
    notes: tuple[str, ...] = ()

    def noted(self, *notes: str) -> GraphMemory:
        """Return the memory with further notes; what is noted already is not noted again."""
        return replace(self, notes=tuple(dict.fromkeys((*self.notes, *notes))))

    def earlier(self, step: str) -> list[ToolRecord]:
        """Return the records of a step that do not stand any more."""
        now = self.current(step)
        return [record for record in self.records if record.step == step and record is not now]

    def choose(self, step: str, parameters: Mapping[str, Any]) -> GraphMemory:
        """Return the memory in which a step has these literal parameters."""
        return replace(self, parameters={**self.parameters, step: dict(parameters)})

    def revise(self, plan: ToolPlan) -> GraphMemory:
        """Return the memory with another plan; what it has in common with the old one is not done again.

        Parameters are kept for steps of the same id and tool.
        """
        old = {step.id: step.tool for step in self.plan.steps}
        kept = {
            step.id: self.parameters[step.id]
            for step in plan.steps
            if step.id in self.parameters and old.get(step.id) == step.tool
        }
        return replace(self, plan=plan, parameters=kept)

    def clear_parameters(self, steps: Collection[str]) -> GraphMemory:
        """Return the memory in which the parameters of some steps are to be chosen anew."""
        return replace(
            self, parameters={name: given for name, given in self.parameters.items() if name not in steps}
        )

    def with_record(self, record: ToolRecord) -> GraphMemory:
        """Return the memory with one more record."""
        return replace(self, records=(*self.records, record))

    @cached_property
    def _by_name(self) -> Mapping[str, ToolRecord]:
        return {record.recipe.fingerprint: record for record in self.records}

    @cached_property
    def recipes(self) -> Mapping[str, ToolInvocation]:
        """The recipe of each step as things stand; none for steps without parameters or behind such ones."""
        found: dict[str, ToolInvocation] = {}
        for step in self.plan.steps:
            if step.id in self.parameters and all(reference.step in found for reference in step.references):
                found[step.id] = _recipe(step, self.parameters[step.id], found)
        return found

    def current(self, step: str) -> ToolRecord | None:
        """Return the record of a step as it would be carried out now, or None where there is none yet."""
        recipe = self.recipes.get(step)
        return self._by_name.get(recipe.fingerprint) if recipe else None

    def latest(self, step: str) -> ToolRecord | None:
        """Return the newest record of a step, current or not."""
        return next((record for record in reversed(self.records) if record.step == step), None)

    def version(self, step: str) -> int:
        """Return how many different results a step has had, the current one included."""
        return len({record.recipe.fingerprint for record in self.records if record.step == step})

    def runnable(self, step: str) -> bool:
        """Return whether a step has its parameters and sound results for all its inputs."""
        sources = [self.current(reference.step) for reference in self.plan.step(step).references]
        return step in self.parameters and all(found is not None and not found.failed for found in sources)

    def findings(self) -> Iterator[tuple[str, CheckResult]]:
        """Yield what was measured by the steps as they stand, each with the id of its step."""
        for step in self.plan.ids:
            record = self.current(step)
            yield from ((step, found) for found in (record.findings if record else ()))

    def edges(self) -> Iterator[tuple[str, str, str, str]]:
        """Yield `(source step, output port, target step, input port)` for every use of a result."""
        for step in self.plan.steps:
            for port, references in step.inputs.items():
                for reference in references:
                    yield reference.step, reference.port, step.id, port


def _recipe(
    step: PlanStep, parameters: Mapping[str, Any], known: Mapping[str, ToolInvocation]
) -> ToolInvocation:
    inputs = {
        port: tuple(f"{known[reference.step].fingerprint}.{reference.port}" for reference in references)
        for port, references in sorted(step.inputs.items())
    }
    return ToolInvocation(step.tool, dict(parameters), inputs)
