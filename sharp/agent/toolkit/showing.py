"""Tools that show a solution and write it to files."""

from __future__ import annotations

from sharp.agent.toolkit.solving import SOLUTION, SOUND, Nothing
from sharp.agent.tools import Call, Outcome, Port, Tool


def _figures(call: Call) -> Outcome:
    from sharp.solving.figures import figures

    drawn = tuple(figures(call.inputs["problem"], call.inputs["solution"].solution))
    return Outcome({"figures": drawn}, {"figures": [figure.caption for figure in drawn]})


def _arrays(call: Call) -> Outcome:
    from sharp.solving.output import npz, output

    solution = call.inputs["solution"].solution
    found = output(call.inputs["problem"], solution)
    return Outcome({"arrays": npz(found, solution)}, {"written": "solution.npz"})


TOOLS: tuple[Tool, ...] = (
    Tool(
        "visualise",
        "solver",
        "Draws the solution: lines, or maps in two and three dimensions.",
        Nothing,
        (SOUND, SOLUTION),
        (Port("figures", "figures", "drawings with captions"),),
        _figures,
        examples=({},),
    ),
    Tool(
        "export_solution",
        "solver",
        "Puts the fields on the output grid into a file of arrays.",
        Nothing,
        (SOUND, SOLUTION),
        (Port("arrays", "arrays", "the bytes of a .npz file"),),
        _arrays,
        examples=({},),
    ),
)
