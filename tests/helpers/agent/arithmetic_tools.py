"""A small toolkit on numbers, to try plans, memory and pool without solving anything."""

from __future__ import annotations

from sharp.agent.tools import (
    CheckResult,
    Parameters,
    Tool,
    ToolContext,
    ToolError,
    ToolPort,
    ToolResult,
    toolkit_of,
)


class Number(Parameters):
    """A literal."""

    value: float


class Nothing(Parameters):
    """No literals."""


def _give(call: ToolContext) -> ToolResult:
    return ToolResult({"number": call.parameters.value}, {"value": call.parameters.value})


def _add(call: ToolContext) -> ToolResult:
    total = sum(call.inputs["terms"])
    return ToolResult({"number": total}, {"sum": total})


def _root(call: ToolContext) -> ToolResult:
    number = call.inputs["number"]
    if number < 0:
        raise ToolError(f"square_root: expected a number of at least 0, found {number:g}")
    root = number**0.5
    return ToolResult(
        {"root": root, "check": root**2}, {"root": root}, (CheckResult("square", True, "squared again"),)
    )


NUMBER = ToolPort("number", "number", "a number")
TOOLS = toolkit_of(
    Tool("give_number", "parser", "gives a literal", Number, (), (NUMBER,), _give, examples=({"value": 2},)),
    Tool(
        "add",
        "solver",
        "adds",
        Nothing,
        (ToolPort("terms", "number", "what is added", many=True),),
        (NUMBER,),
        _add,
    ),
    Tool(
        "square_root",
        "solver",
        "takes the root",
        Nothing,
        (NUMBER,),
        (ToolPort("root", "root", "the root"), ToolPort("check", "number", "its square")),
        _root,
    ),
)
