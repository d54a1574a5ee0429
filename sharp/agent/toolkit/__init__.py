"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharp.agent.tools import Toolkit, toolkit_of

if TYPE_CHECKING:
    from sharp.agent.synthesis import SynthesisService


def standard_toolkit() -> Toolkit:
    """Return the tools that need nothing but themselves, by name."""
    from sharp.agent.toolkit import problem_tools, solution_tools, solver_tools

    return toolkit_of(*problem_tools.TOOLS, *solver_tools.TOOLS, *solution_tools.TOOLS)


def whole_toolkit(synthesis: SynthesisService) -> Toolkit:
    """Return the standard tools and those that have solver programs written."""
    from sharp.agent.programs.grid_solver import synthesis_tools

    return toolkit_of(*standard_toolkit().values(), *synthesis_tools(synthesis))
