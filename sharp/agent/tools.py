"""Typed tools: what one takes, what it gives, and what it is for, as agents are told and as plans are checked.

A tool takes *parameters*, which are literals of a JSON Schema, and *inputs*, which are results of earlier steps by
the kind of their port. An agent chooses; the tool alone computes: no parameter is a sentence or a piece of code
(tool-parameter separation, PDE-Agent section 3.2).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue

from sharp.error_messages import describe, valid_values
from sharp.errors import InputError

Owner = Literal["parser", "solver"]
Cost = Literal["instant", "seconds", "minutes", "hours"]


class Parameters(BaseModel):
    """Literal parameters of a tool: immutable, and without names that are not of the tool."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class NoArgs(Parameters):
    """No literal parameters."""


class _PlainSchema(GenerateJsonSchema):
    """JSON Schema without what only programs read: titles that repeat names, nulls of what may be left out."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False

    def nullable_schema(self, schema: Any) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: Any) -> JsonSchemaValue:
        return (
            self.generate_inner(schema["schema"])
            if schema.get("default") is None
            else super().default_schema(schema)
        )

    def model_schema(self, schema: Any) -> JsonSchemaValue:
        kept = super().model_schema(schema)
        return {key: value for key, value in kept.items() if key not in ("title", "additionalProperties")}

    def tuple_schema(self, schema: Any) -> JsonSchemaValue:
        kept = super().tuple_schema(schema)
        items = kept.get("prefixItems", [])
        if len(items) < 2 or any(item != items[0] for item in items):
            return kept
        return {**{key: value for key, value in kept.items() if key != "prefixItems"}, "items": items[0]}

    def tagged_union_schema(self, schema: Any) -> JsonSchemaValue:
        kept = super().tagged_union_schema(schema)
        return {key: value for key, value in kept.items() if key != "discriminator"}


class ToolError(InputError):
    """A tool was given what it cannot use, or could not do its work; the sentence is for the agent that called it."""


@dataclass(frozen=True)
class ToolPort:
    """A typed input or output of a tool. `many` inputs take a list of results."""

    name: str
    kind: str
    about: str
    required: bool = True
    many: bool = False

    @property
    def shape(self) -> str:
        """The kind, with what may be left out and what takes a list."""
        notes = [*([] if self.required else ["optional"]), *(["list"] if self.many else [])]
        return f"{self.kind} ({', '.join(notes)})" if notes else self.kind


@dataclass(frozen=True)
class CheckResult:
    """A numeric verdict: a measured value beside its limit. `value` is None where nothing could be measured."""

    name: str
    passed: bool
    about: str
    value: float | None = None
    limit: float | None = None


@dataclass(frozen=True)
class ToolResult:
    """What a tool gives: a value for each output port, a summary in plain JSON for agents, and its findings."""

    outputs: Mapping[str, Any]
    summary: Mapping[str, Any]
    findings: tuple[CheckResult, ...] = ()


@dataclass(frozen=True)
class ToolContext:
    """What a tool is run with: checked parameters, the values of its inputs, and seconds that it may take.

    `wall_s` bounds what a tool computes itself. A tool that asks models and runs their programs is bounded by its
    parameters, and by the limits of each call and of each program.
    """

    parameters: Any
    inputs: Mapping[str, Any]
    wall_s: float


Run = Callable[[ToolContext], ToolResult | Awaitable[ToolResult]]
Fits = Callable[[Mapping[str, Any], Mapping[str, Mapping[str, Any]]], str]
"""Says what is wrong with parameters beside those of other tools, which it gets by the tools' names; or nothing."""


@dataclass(frozen=True)
class Tool:
    """A tool of the toolkit. `limits` says what it cannot do; `examples` are calls that are right.

    `fits` compares parameters with those of other tools, so that what contradicts them is told where it is given.
    """

    name: str
    owner: Owner
    about: str
    parameters: type[Parameters]
    inputs: tuple[ToolPort, ...]
    outputs: tuple[ToolPort, ...]
    run: Run
    cost: Cost = "instant"
    limits: str = ""
    examples: tuple[Mapping[str, Any], ...] = ()
    fits: Fits = lambda *_: ""

    def output(self, name: str) -> ToolPort | None:
        """Return the output port of a name."""
        return next((port for port in self.outputs if port.name == name), None)

    def checked(self, parameters: Mapping[str, Any]) -> Parameters:
        """Return literal parameters as the tool takes them; raises `ToolError` listing all that is wrong.

        A thing in place of a list of it, or a list of one thing in its place, is taken for what fits; a value that is
        empty and does not fit was not given.
        """
        try:
            return self.parameters.model_validate(parameters)
        except ValidationError as error:
            with suppress(ValueError, LookupError, TypeError):
                return self.parameters.model_validate(_reshaped(parameters, error))
            parts = "; ".join(self._sentence(part) for part in error.errors(include_url=False))
            raise ToolError(f"{self.name}: {parts}") from None

    def _sentence(self, error: Any) -> str:
        place = ".".join(map(str, error["loc"])) or "parameters"
        if error["type"] == "extra_forbidden":
            return f"{place}: unknown; {valid_values('parameters', place, self.parameters.model_fields)}"
        if error["type"] == "missing":
            return f"{place}: required, and missing"
        return f"{place}: {error['msg'].removeprefix('Value error, ')}, found {describe(error['input'])}"

    def card(self) -> dict[str, Any]:
        """Return the tool in plain JSON, as agents read it."""
        return {
            "name": self.name,
            "about": self.about,
            "parameters": self.parameters.model_json_schema(schema_generator=_PlainSchema),
            "inputs": [asdict(port) for port in self.inputs],
            "outputs": [{"name": port.name, "kind": port.kind, "about": port.about} for port in self.outputs],
            "cost": self.cost,
            "limits": self.limits,
            "examples": [dict(example) for example in self.examples],
        }

    def brief(self) -> dict[str, Any]:
        """Return what a plan needs to know of the tool: what it is for, and the kinds of its inputs and outputs."""
        return {
            "name": self.name,
            "about": self.about,
            **({"inputs": {port.name: port.shape for port in self.inputs}} if self.inputs else {}),
            "outputs": {port.name: port.kind for port in self.outputs},
            **({"cost": self.cost} if self.cost != "instant" else {}),
        }


def _reshaped(parameters: Mapping[str, Any], error: ValidationError) -> Any:
    """Return parameters with each misfit wrapped into a list or taken out of one; raises if that cannot mend it."""
    found = deepcopy(dict(parameters))
    for misfit in error.errors(include_url=False):
        # Places also name the member of a union that was tried, which is no key of the value.
        *way, last = [key for key in misfit["loc"] if not isinstance(key, str) or key.isidentifier()]
        place: Any = found
        for key in way:
            place = place[key]
        given = place[last]
        if misfit["type"] in {"list_type", "tuple_type"}:
            place[last] = [given]
        elif isinstance(given, list) and len(given) == 1:
            place[last] = given[0]
        elif given in (None, "") and last in place:
            del place[last]
    return found


def tool(
    owner: Owner,
    inputs: tuple[ToolPort, ...],
    outputs: tuple[ToolPort, ...],
    parameters: type[Parameters] = NoArgs,
    *,
    cost: Cost = "instant",
    limits: str = "",
    examples: tuple[Mapping[str, Any], ...] = ({},),
    fits: Fits = lambda *_: "",
) -> Callable[[Run], Tool]:
    """Make a tool of the function that runs it: its name is the tool's, its docstring says what the tool is for."""

    def made(run: Run) -> Tool:
        about = " ".join((run.__doc__ or "").split())
        return Tool(
            run.__name__, owner, about, parameters, inputs, outputs, run, cost, limits, examples, fits
        )

    return made


Toolkit = Mapping[str, Tool]


def toolkit_of(*tools: Tool) -> Toolkit:
    """Return tools by name; a name stands for one tool."""
    names = [tool.name for tool in tools]
    assert len(set(names)) == len(names), "tools have different names"
    return {tool.name: tool for tool in tools}
