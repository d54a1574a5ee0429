"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sharp.agent.tools import Toolkit, toolkit_of

if TYPE_CHECKING:
    from sharp.agent.synthesis import Commission


def standard_toolkit() -> Toolkit:
    """Return the tools that need nothing but themselves, by name."""
    from sharp.agent.toolkit import checking, setting, showing, solving

    return toolkit_of(*setting.TOOLS, *solving.TOOLS, *checking.TOOLS, *showing.TOOLS)


def whole_toolkit(commission: Commission) -> Toolkit:
    """Return the standard tools and those that have solver programs written."""
    from sharp.agent.toolkit.synthesis import synthesis_tools

    return toolkit_of(*standard_toolkit().values(), *synthesis_tools(commission))
