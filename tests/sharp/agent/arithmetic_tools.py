"""A small toolkit on numbers, to try plans, memory and pool without solving anything."""

from __future__ import annotations

from sharp.agent.tools import Call, Finding, Outcome, Parameters, Port, Tool, ToolError, toolkit_of


class Number(Parameters):
    """A literal."""

    value: float


class Nothing(Parameters):
    """No literals."""


def _give(call: Call) -> Outcome:
    return Outcome({"number": call.parameters.value}, {"value": call.parameters.value})


def _add(call: Call) -> Outcome:
    total = sum(call.inputs["terms"])
    return Outcome({"number": total}, {"sum": total})


def _root(call: Call) -> Outcome:
    number = call.inputs["number"]
    if number < 0:
        raise ToolError(f"square_root: expected a number of at least 0, found {number:g}")
    root = number**0.5
    return Outcome(
        {"root": root, "check": root**2}, {"root": root}, (Finding("square", True, "squared again"),)
    )


NUMBER = Port("number", "number", "a number")
TOOLS = toolkit_of(
    Tool("give_number", "parser", "gives a literal", Number, (), (NUMBER,), _give, examples=({"value": 2},)),
    Tool(
        "add",
        "solver",
        "adds",
        Nothing,
        (Port("terms", "number", "what is added", many=True),),
        (NUMBER,),
        _add,
    ),
    Tool(
        "square_root",
        "solver",
        "takes the root",
        Nothing,
        (NUMBER,),
        (Port("root", "root", "the root"), Port("check", "number", "its square")),
        _root,
    ),
)
