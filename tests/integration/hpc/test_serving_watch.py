"""Telling a hung server from a full one, and an idle one from one that only its own supervisor asks."""

from __future__ import annotations

import asyncio
import time
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


async def watched(server: Any, folder: Path, step_s: float) -> str:
    """Let time pass with every second probe; stop it after twenty."""
    clock, told = Clock(), asyncio.Event()
    watch = HealthMonitor(server, server, folder, "1.0", watch_s=0.01, idle_s=100.0, clock=clock)
    over = asyncio.create_task(watch.run_until_exit(told, time.time() + 3600))
    for probes in range(2, 40, 2):
        while server.probes < probes and not over.done():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        clock.now += step_s
    told.set()
    return await over


@pytest.mark.parametrize(
    ("server", "step_s", "why"),
    [
        (Server(), 30, "no requests for 100 s"),  # only its supervisor asks
        (Server(others=1), 30, "stop requested"),
        (Server(counts=False), 30, "stop requested"),
        (Server(fails=True), 0, "stop requested"),  # it is full, and gets on while probes wait
    ],
)
async def test_when_a_server_is_idle(tmp_path: Path, server: Server, step_s: float, why: str) -> None:
    assert await watched(server, tmp_path, step_s) == why


async def test_a_server_that_answers_no_probe_and_gets_on_with_nothing_hangs(tmp_path: Path) -> None:
    server = Server(fails=True, moves=False)
    with pytest.raises(ServerLost, match=r"the server hangs: no answer \(timed out\)"):
        await watched(server, tmp_path, 0)
    assert server.probes >= 2


async def test_a_server_that_counts_nothing_has_to_answer(tmp_path: Path) -> None:
    with pytest.raises(ServerLost):
        await watched(Server(fails=True, counts=False), tmp_path, 0)
