"""The toolkit: setting a problem up, solving it, checking the solution, showing it."""

from __future__ import annotations

from sharp.agent.tools import Toolkit, toolkit_of


def standard_toolkit() -> Toolkit:
    """Return all tools by name."""
    from sharp.agent.toolkit import checking, setting, showing, solving

    return toolkit_of(*setting.TOOLS, *solving.TOOLS, *checking.TOOLS, *showing.TOOLS)
