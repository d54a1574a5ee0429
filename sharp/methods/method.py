"""What a method of search is, and how the configured one is run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from sharp.plugins import load_plugin

if TYPE_CHECKING:
    from sharp.tournament import RunContext, Tournament

    Method = Callable[[RunContext], Awaitable[Tournament]]


async def run_method(session: RunContext) -> Tournament:
    """Carry out the configured method and return its final state.

    Every method is a pure function of the configuration and of the answers to the two effects: it reads no clock, draws
    all randomness from the run's seed, and does not depend on the order in which concurrent effects finish. It is found
    by its entry point of the group `sharp.methods`; raises `ConfigurationError` where there is none of the name.
    """
    method: Method = load_plugin("sharp.methods", session.config.method)
    return await method(session)
