"""Carrying a sweep out: many tournaments in one event loop, each answering for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hpc.errors import Fenced, HpcError
from hpc.lease import Lease
from sharp.runs.advance import HEARTBEAT_S, Leave, never
from sharp.runs.site import Site
from sharp.sweeps.cellrun import DataRoom, Rest, Stage, has_passed, play_cell
from sharp.sweeps.cells import Cell
from sharp.sweeps.folder import has_begun
from sharp.sweeps.graph import Share
from sharp.sweeps.milestones import Milestones
from sharp.sweeps.plan import SweepPlan
from sharp.sweeps.publish import Publisher, SweepFiles, publish
from sharp.sweeps.purse import SweepBudgetExceeded
from sharp.sweeps.record import RecordWriter
from sharp.sweeps.row import Row
from sharp.sweeps.watcher import Watcher


@dataclass(frozen=True)
class SweepOutcome:
    """How a sweep came to rest: where table and report are, and by cell the errors of those that failed.

    `left` says that it was time to leave before all was done, `waiting_for` what is waited for then; `stopped` is the
    budget of the sweep that is used up, if one is.
    """

    files: SweepFiles
    errors: Mapping[str, Exception]
    left: bool = False
    waiting_for: tuple[str, ...] = ()
    stopped: SweepBudgetExceeded | None = None


class Player:
    """Plays the cells of a plan that are not finished, a bounded number at a time, payers before those they give to."""

    def __init__(
        self,
        plan: SweepPlan,
        writer: RecordWriter,
        site: Site,
        watcher: Watcher,
        *,
        leave: Leave = never,
        takeover: bool = False,
        on_cluster: bool = False,
    ) -> None:
        self._plan, self._writer = plan, writer
        self._slots = asyncio.Semaphore(plan.sweep.form.limits.runs)
        left = {cell.id: cell for cell in plan.left}
        self._cells = [left[node.id] for node in plan.graph.order if node.id in left]
        self._milestones = Milestones(left, self._has_passed)
        self._leaving: asyncio.Task[tuple[str, ...]] = asyncio.ensure_future(leave())
        room = DataRoom(watcher.data)
        self._stage = Stage(
            plan.folder, site, room, self._milestones, watcher, self._until_leaving, takeover, on_cluster
        )
        form = plan.sweep.form
        self._publisher = Publisher(lambda: publish(plan.folder, form.name, form.description, writer.record))
        self._waiting: dict[str, None] = {}
        self._errors: dict[str, Exception] = {}
        self._stopped: SweepBudgetExceeded | None = None

    async def play(self) -> SweepOutcome:
        """Play until every run has come to rest, a budget of the sweep is used up, or it is time to leave.

        Raises what `leave` raises, `Fenced` once another has taken the sweep over, whatever keeps its record from
        being written, and what would end all runs.
        """
        try:
            await together(*(self._cell(cell) for cell in self._cells))
            if self._leaving.done():
                self._waiting |= dict.fromkeys(self._leaving.result())
            return SweepOutcome(
                self._publisher.now(), self._errors, self._leaving.done(), tuple(self._waiting), self._stopped
            )
        finally:
            self._leaving.cancel()

    @property
    def _ends(self) -> bool:
        return self._leaving.done() or self._stopped is not None

    async def _until_leaving(self) -> tuple[str, ...]:
        """Return when it is time to leave; what went wrong in finding out is raised in the end, once."""
        await asyncio.wait({self._leaving})
        return ()

    async def _cell(self, cell: Cell) -> None:
        share = await self._donor(cell)
        async with self._slots:
            if not self._ends:
                self._take_up(cell)
                self._note(cell, await play_cell(cell, share, self._stage))
        self._milestones.over(cell.id)

    async def _donor(self, cell: Cell) -> Share | None:
        """Wait until somebody has what a cell can take, or nobody will; then return whoever has most of it.

        Of those that came to nothing, the last one has taken what the others had.
        """
        graph, folder = self._plan.graph, self._plan.folder
        for share in graph.donors(cell.id):
            if await self._milestones.reached(share):
                return share
        begun = (share for share in graph.donors(cell.id) if has_begun(folder, share.donor))
        return max(begun, key=lambda s: (s.stage != "analysis", graph.position(s.donor)), default=None)

    def _take_up(self, cell: Cell) -> None:
        """Let a row that is about to become wrong say so."""
        row = self._writer.record.rows.get(cell.id)
        if row is not None and row.state != "unfinished":
            self._writer.row(cell.id, replace(row, state="unfinished", note=""))

    def _note(self, cell: Cell, rest: Rest) -> None:
        self._waiting |= dict.fromkeys(rest.waiting_for)
        if isinstance(rest.error, SweepBudgetExceeded):
            self._stopped = self._stopped or rest.error
        elif rest.error is not None:
            self._errors[cell.id] = rest.error
        if rest.row is not None:
            row = self._with_costs(cell, rest.row)
            self._writer.row(cell.id, row)
            self._stage.watcher.rested(cell.id, row)
            self._publisher.due()

    def _with_costs(self, cell: Cell, row: Row) -> Row:
        """Keep what a run has cost before, where this time it could not even be opened."""
        before = self._writer.record.rows.get(cell.id)
        opened = row.software != ""
        return row if opened or before is None else replace(before, state=row.state, note=row.note)

    def _has_passed(self, share: Share) -> bool:
        known = self._plan.states.get(share.donor)
        return known == "finished" or has_passed(self._plan.folder, share)


async def play_with_heart(player: Player, lease: Lease) -> SweepOutcome:
    """Play while the lease of the sweep is renewed; raises `Fenced` once it is lost."""
    playing = asyncio.ensure_future(player.play())
    heart = asyncio.ensure_future(_beat(lease))
    try:
        await asyncio.wait({playing, heart}, return_when=asyncio.FIRST_COMPLETED)
        if heart.done():
            heart.result()
        return await playing
    finally:
        await _ended(playing, heart)


async def together(*works: Awaitable[None]) -> None:
    """Await all; the first error ends the others, and is raised once they have ended."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        await _ended(*tasks)


async def _ended(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _beat(lease: Lease) -> None:
    """Renew the lease of a sweep for ever; raises `Fenced` once it is lost. What else goes wrong, a write will say."""
    while True:
        await asyncio.sleep(HEARTBEAT_S)
        try:
            lease.beat()
        except Fenced:
            raise
        except HpcError:
            continue
