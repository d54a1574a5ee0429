"""Methods: ordinary async functions that await the two paid effects and nothing else."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from sharp.stages.session import Session
    from sharp.stages.state import Tournament

    Run = Callable[[Session], Awaitable[Tournament]]


async def play(session: Session) -> Tournament:
    """Carry out the configured method and return its final state.

    Every method is a pure function of the configuration and of the answers to the two effects: it reads no clock, draws
    all randomness from the run's seed, and does not depend on the order in which concurrent effects finish. A method
    `some-name` is the function `some_name` of the module of that name.
    """
    name = session.config.method.replace("-", "_")
    method = cast("Run", getattr(import_module(f"sharp.methods.{name}"), name))
    return await method(session)
