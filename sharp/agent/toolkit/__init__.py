"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharp.agent.tools import Toolkit, toolkit_of

if TYPE_CHECKING:
    from sharp.agent.synthesis import SynthesisService


def standard_toolkit() -> Toolkit:
    """Return the tools that need nothing but themselves, by name."""
    from sharp.agent.toolkit import output_tools, problem_tools, solver_tools, verification_tools

    return toolkit_of(
        *problem_tools.TOOLS, *solver_tools.TOOLS, *verification_tools.TOOLS, *output_tools.TOOLS
    )


def whole_toolkit(commission: SynthesisService) -> Toolkit:
    """Return the standard tools and those that have solver programs written."""
    from sharp.agent.toolkit.synthesis_tools import synthesis_tools

    return toolkit_of(*standard_toolkit().values(), *synthesis_tools(commission))
