"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""

from __future__ import annotations

from sharp.agent.tools import Toolkit, toolkit_of


def standard_toolkit() -> Toolkit:
    """Return the tools that need nothing but themselves, by name."""
    from sharp.agent.toolkit import problem_tools, solution_tools, solver_tools

    return toolkit_of(*problem_tools.TOOLS, *solver_tools.TOOLS, *solution_tools.TOOLS)
