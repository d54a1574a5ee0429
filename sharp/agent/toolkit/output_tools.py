"""Tools that show a solution and write it to files."""

from __future__ import annotations

from sharp.agent.toolkit.solver_tools import SOLUTION, SOUND, NoArgs
from sharp.agent.tools import Tool, ToolContext, ToolPort, ToolResult


def _figures(call: ToolContext) -> ToolResult:
    from sharp.solvers.figures import figures

    drawn = tuple(figures(call.inputs["problem"], call.inputs["solution"].solution))
    return ToolResult({"figures": drawn}, {"figures": [figure.caption for figure in drawn]})


def _arrays(call: ToolContext) -> ToolResult:
    from sharp.solvers.output import npz, output

    solution = call.inputs["solution"].solution
    found = output(call.inputs["problem"], solution)
    return ToolResult({"arrays": npz(found, solution)}, {"written": "solution.npz"})


TOOLS: tuple[Tool, ...] = (
    Tool(
        "visualise",
        "solver",
        "Draws the solution: lines, or maps in two and three dimensions.",
        NoArgs,
        (SOUND, SOLUTION),
        (ToolPort("figures", "figures", "drawings with captions"),),
        _figures,
        examples=({},),
    ),
    Tool(
        "export_solution",
        "solver",
        "Puts the fields on the output grid into a file of arrays.",
        NoArgs,
        (SOUND, SOLUTION),
        (ToolPort("arrays", "arrays", "the bytes of a .npz file"),),
        _arrays,
        examples=({},),
    ),
)
