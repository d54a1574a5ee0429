"""Programs that a model writes instead of choosing parameters of tools: asked for, run, used as a solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharp.agent.toolkit import standard_toolkit
from sharp.agent.tools import Toolkit, toolkit_of

if TYPE_CHECKING:
    from sharp.agent.synthesis import SynthesisService


def whole_toolkit(synthesis: SynthesisService) -> Toolkit:
    """Return the standard tools and those that have solver programs written."""
    from sharp.agent.programs.grid_solver import synthesis_tools

    return toolkit_of(*standard_toolkit().values(), *synthesis_tools(synthesis))
