"""Telling a hung server from a full one, and an idle one from one that only its own supervisor asks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from hpc.serving.health import HealthMonitor, ProbeError, ServerLost, ServerMetrics


class Server:
    """Counts as told: with every look `others` requests are done, each of 10 tokens; probes may fail."""

    exit_code = None

    def __init__(
        self, *, others: int = 0, fails: bool = False, counts: bool = True, moves: bool = True
    ) -> None:
        self.others, self.fails, self.counts, self.moves = others, fails, counts, moves
        self.finished = self.probes = self.looks = 0

    def quoted(self) -> str:
        return ""

    def generate(self, limit_s: float) -> None:
        self.probes += 1
        if self.fails:
            raise ProbeError("no answer (timed out)")
        self.finished += 1

    def work(self) -> ServerMetrics | None:
        self.looks += 1
        self.finished += self.others
        tokens = 10 * self.looks if self.moves else 0
        return ServerMetrics(0, self.finished, tokens, 0, 0) if self.counts else None


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watch_of(server: Any, folder: Path, clock: Clock, idle_s: float = 100.0) -> HealthMonitor:
    return HealthMonitor(server, server, folder, "1.0", watch_s=0.01, idle_s=idle_s, clock=clock)


async def watched(server: Server, folder: Path, *, idle_s: float = 100.0, steps_s: Iterator[float]) -> str:
    """Let time pass with every second probe; stop it after twenty."""
    clock, told = Clock(), asyncio.Event()
    over = asyncio.create_task(
        watch_of(server, folder, clock, idle_s).run_until_exit(told, time.time() + 3600)
    )
    for step_s, probes in zip(steps_s, range(2, 40, 2), strict=False):
        while server.probes < probes and not over.done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        clock.now += step_s
    told.set()
    return await over


def steady(step_s: float) -> Iterator[float]:
    return (step_s for _ in count())


async def test_a_server_that_only_its_supervisor_asks_is_idle(tmp_path: Path) -> None:
    assert await watched(Server(), tmp_path, steps_s=steady(30)) == "nobody asked for anything for 100 s"


async def test_a_server_that_others_ask_is_not(tmp_path: Path) -> None:
    assert await watched(Server(others=1), tmp_path, steps_s=steady(30)) == "told to stop"


async def test_a_server_that_counts_nothing_is_never_idle(tmp_path: Path) -> None:
    assert await watched(Server(counts=False), tmp_path, steps_s=steady(30)) == "told to stop"


async def test_a_server_that_answers_no_probe_and_gets_on_with_nothing_hangs(tmp_path: Path) -> None:
    server = Server(fails=True, moves=False)
    with pytest.raises(ServerLost, match=r"the server hangs: no answer \(timed out\)"):
        await watched(server, tmp_path, steps_s=steady(0))
    assert server.probes >= 2


async def test_a_server_that_counts_nothing_has_to_answer(tmp_path: Path) -> None:
    with pytest.raises(ServerLost):
        await watched(Server(fails=True, counts=False), tmp_path, steps_s=steady(0))


async def test_a_full_server_may_let_probes_wait_while_it_gets_on(tmp_path: Path) -> None:
    assert await watched(Server(fails=True), tmp_path, steps_s=steady(0)) == "told to stop"
