"""Carrying a sweep out: taking its directory in hand, and doing so on this machine."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hpc.errors import HpcError
from hpc.files import make_directory, remove_leftovers, write_atomic
from hpc.journal import read_run
from hpc.lease import Lease
from sharp.llm.budgets import Spent
from sharp.runs.budget import Clock, paid_ledger
from sharp.runs.directory import load_run
from sharp.runs.execute import sigterm_interrupts
from sharp.sweeps.folder import check_folder, run_path, runs_folder, sweep_file
from sharp.sweeps.plan import SweepPlan
from sharp.sweeps.play import Player, SweepOutcome, play_with_heart
from sharp.sweeps.purse import Purse, Spending
from sharp.sweeps.record import RecordWriter
from sharp.sweeps.site import PoolSite, SharedSite
from sharp.sweeps.watcher import Watcher


def keep_file(plan: SweepPlan) -> None:
    """Make the directory of a sweep and keep its file there.

    Raises `RunDirectoryError` where the directory is another's or cannot be written.
    """
    check_folder(plan.folder)
    make_directory(runs_folder(plan.folder))
    content = plan.sweep.frozen()
    if not sweep_file(plan.folder).exists() or sweep_file(plan.folder).read_bytes() != content:
        write_atomic(sweep_file(plan.folder), content)


@contextmanager
def in_hand(plan: SweepPlan, *, takeover: bool = False) -> Iterator[tuple[RecordWriter, Lease]]:
    """Hold the lease of a sweep, whose record then says what the plan says.

    Raises `RunLocked` where another process carries it out, unless told to take it over.
    """
    lease = Lease.acquire(plan.folder, takeover=takeover)
    try:
        remove_leftovers(plan.folder)
        with RecordWriter(plan.folder, lease) as writer:
            writer.plan(plan.known(), plan.sweep.form.budget.model_dump(mode="json"))
            yield writer, lease
    finally:
        lease.release()


def play_here(plan: SweepPlan, watcher: Watcher, *, takeover: bool = False) -> SweepOutcome:
    """Carry a sweep out on this machine until every run has come to rest or a budget of the sweep is used up.

    Raises KeyboardInterrupt on Ctrl-C or SIGTERM; everything stays resumable.
    """
    keep_file(plan)
    with in_hand(plan, takeover=takeover) as (writer, lease):
        try:
            return asyncio.run(_play(plan, writer, lease, watcher, takeover=takeover))
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


async def _play(
    plan: SweepPlan, writer: RecordWriter, lease: Lease, watcher: Watcher, *, takeover: bool
) -> SweepOutcome:
    purse = make_purse(plan, watcher.warning, working_time(writer.record.worked_minutes))
    async with PoolSite(_evaluations(plan)) as site:
        player = Player(plan, writer, SharedSite(site, purse), watcher, takeover=takeover)
        with sigterm_interrupts():
            return await play_with_heart(player, lease)


def make_purse(plan: SweepPlan, warn: Callable[[str], None], clock: Clock | None = None) -> Purse:
    """Return the purse of a sweep, from which its runs have paid what their records say.

    `clock` None: the site of each run tells what its jobs used.
    """
    budget = plan.sweep.form.budget
    limited = any(limit is not None for limit in budget.model_dump().values())
    before = sum(_spendings(plan), Spending()) if limited else Spending()
    return Purse(budget, before, warn, clock)


def working_time(before: float) -> Clock:
    """Return the clock of a sweep without a cluster: the minutes that it was carried out before, and those from now."""
    began = time.monotonic()
    return lambda: Spent(wall_time=before + (time.monotonic() - began) / 60)


def _evaluations(plan: SweepPlan) -> int:
    """Return how many evaluations may run at a time here: what the file says, else the most that a cell asks for."""
    wanted = (cell.config.evaluation.workers for cell in plan.cells)
    return plan.sweep.form.limits.evaluations or max(wanted)


def _spendings(plan: SweepPlan) -> Iterator[Spending]:
    """Yield what each run has paid for: of those that did not come to rest, by their journals."""
    for cell in plan.begun:
        row = plan.record.rows.get(cell)
        if row is not None and row.state != "unfinished":
            yield Spending.of_row(row)
        else:
            yield _recorded(plan, cell)


def _recorded(plan: SweepPlan, cell: str) -> Spending:
    try:
        run = load_run(run_path(plan.folder, cell))
        effects = read_run(run.path).effects
    except HpcError:  # it will fail for this reason when it is taken up
        return Spending()
    ledger = paid_ledger(run, effects)
    return Spending(ledger.total, ledger.evaluations - ledger.cached_evaluations)
