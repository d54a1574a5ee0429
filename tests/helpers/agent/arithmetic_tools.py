"""A small toolkit on numbers, to try plans, memory and pool without solving anything."""

from __future__ import annotations

from sharp.agent.tools import (
    CheckResult,
    Parameters,
    ToolContext,
    ToolError,
    ToolPort,
    ToolResult,
    tool,
    toolkit_of,
)


class Number(Parameters):
    """A literal."""

    value: float


NUMBER, ROOT = ToolPort("number", "number", "a number"), ToolPort("root", "root", "the root")
TERMS = ToolPort("terms", "number", "what is added", many=True)


@tool("parser", (), (NUMBER,), Number, examples=({"value": 2},))
def give_number(call: ToolContext) -> ToolResult:
    """gives a literal"""
    return ToolResult({"number": call.parameters.value}, {"value": call.parameters.value})


@tool("solver", (TERMS,), (NUMBER,))
def add(call: ToolContext) -> ToolResult:
    """adds"""
    total = sum(call.inputs["terms"])
    return ToolResult({"number": total}, {"sum": total})


@tool("solver", (NUMBER,), (ROOT, ToolPort("check", "number", "its square")))
def square_root(call: ToolContext) -> ToolResult:
    """takes the root"""
    number = call.inputs["number"]
    if number < 0:
        raise ToolError(f"square_root: expected a number of at least 0, found {number:g}")
    root = number**0.5
    square = CheckResult("square", True, "squared again")
    return ToolResult({"root": root, "check": root**2}, {"root": root}, (square,))


TOOLS = toolkit_of(give_number, add, square_root)
