"""One cell of a sweep at work: its run is made or taken up, carried on, reported and put into figures."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hpc.errors import HpcError, StorageFull, WorkCancelled
from hpc.journal import Journal, read_run
from hpc.records import EffectRecord
from hpc.slurm.errors import SlurmError
from sharp.config import RunConfig
from sharp.errors import SharpError
from sharp.numerics.reference import ProgressCallback
from sharp.report import write_report
from sharp.runs.advance import Leave, Outcome, advance, controlling
from sharp.runs.configure import problem_of
from sharp.runs.directory import Run, create_run, load_run, resolve_dataset, with_servers
from sharp.runs.effects import Progress
from sharp.runs.site import Site
from sharp.sweeps.cells import Cell
from sharp.sweeps.folder import has_begun, run_path
from sharp.sweeps.graph import Share
from sharp.sweeps.milestones import Milestones
from sharp.sweeps.purse import SweepBudgetExceeded
from sharp.sweeps.row import Row
from sharp.sweeps.summary import summarise
from sharp.sweeps.watcher import Watcher

OF_ALL = (StorageFull, WorkCancelled, SlurmError)
"""What is not the matter of one run: no other would get any further."""


@dataclass(frozen=True)
class Rest:
    """How a run came to rest: its row, or what it waits for if it is to go on; the error that ended it, if one did."""

    row: Row | None
    waiting_for: tuple[str, ...] = ()
    error: Exception | None = None


class DataRoom:
    """Makes reference data, each set once and one at a time, in a thread of its own: it may take minutes.

    Nothing else is done in threads: in Python 3.11 two that parse programs at a time fail (SystemError).
    """

    def __init__(self, progress: ProgressCallback) -> None:
        self._progress = progress
        self._lock = asyncio.Lock()
        self._there: set[tuple[object, ...]] = set()

    async def ensure(self, config: RunConfig) -> None:
        """Return once the data of a configuration are there; raises `DataError`."""
        key = data_key(config)
        async with self._lock:
            if key not in self._there:
                problem = problem_of(config)
                await asyncio.to_thread(resolve_dataset, config, problem, self._progress)
                self._there.add(key)


@dataclass(frozen=True)
class Stage:
    """What all runs of a sweep have in common while they are carried out.

    `on_cluster` says that jobs serve the models that tell how.
    """

    folder: Path
    site: Site
    data: DataRoom
    milestones: Milestones
    watcher: Watcher
    leave: Leave
    takeover: bool = False
    on_cluster: bool = False


async def play_cell(cell: Cell, share: Share | None, stage: Stage) -> Rest:
    """Carry the run of a cell on as far as it goes; what ends it is told in its row, and ends no other.

    Raises only what would end the others as well (`OF_ALL`).
    """
    try:
        with stage.site.parking.busy():
            run = await _prepared(cell, share, stage)
        stage.watcher.begun(cell.id, run)
        with controlling(run, takeover=stage.takeover, warn=stage.watcher.warning) as (current, journal):
            return await _played(cell, current, journal, stage)
    except OF_ALL:
        raise
    except Exception as error:  # noqa: BLE001 - one run that fails must not end the others
        return Rest(Row("failed", note=_sentence(error, stage.watcher)), error=error)


async def _prepared(cell: Cell, share: Share | None, stage: Stage) -> Run:
    """Return the run of a cell, made if need be; budgets and servers are those of the sweep file."""
    path, config = run_path(stage.folder, cell.id), cell.config
    if has_begun(stage.folder, cell.id):
        return _amended(load_run(path), config)
    if share is not None:
        config = _taking(config, share, stage.folder)
    await stage.data.ensure(config)
    return create_run(config, path, on_cluster=stage.on_cluster)


def _taking(config: RunConfig, share: Share, folder: Path) -> RunConfig:
    donor = run_path(folder, share.donor).absolute()
    taken = {"reuse": donor, "reuse_repairs": share.stage == "best-of-n"}
    return config.model_copy(update={"genesis": config.genesis.model_copy(update=taken)})


def _amended(run: Run, config: RunConfig) -> Run:
    models = run.config.models.model_copy(update={"servers": config.models.servers})
    current = run.config.model_copy(update={"budget": config.budget, "models": models})
    return replace(run, config=current, cards=with_servers(run.cards, current))


async def _played(cell: Cell, run: Run, journal: Journal, stage: Stage) -> Rest:
    def listener(progress: Progress) -> None:
        if progress.phase == "barrier":
            stage.milestones.passed(cell.id, progress.path)
        stage.watcher.effect(cell.id, progress)

    try:
        outcome = await advance(
            run, journal, stage.site, leave=stage.leave, listener=listener, warn=stage.watcher.warning
        )
        return _rest(run, journal.effects, outcome)
    except OF_ALL:
        raise
    except SweepBudgetExceeded as error:
        return Rest(summarise(run, journal.effects, None, "unfinished"), error=error)
    except Exception as error:  # noqa: BLE001 - as above; here its cost is known
        note = _sentence(error, stage.watcher)
        return Rest(summarise(run, journal.effects, None, "failed", note), error=error)


def _rest(run: Run, effects: Mapping[str, EffectRecord], outcome: Outcome) -> Rest:
    if outcome.state is None:
        return Rest(None, outcome.waiting_for)
    write_report(run, outcome.state)
    note = "" if outcome.state.best is not None else "no candidate ran successfully"
    return Rest(summarise(run, effects, outcome.state, "finished", note))


def _sentence(error: Exception, watcher: Watcher) -> str:
    """Return what to say of an error; of one that nobody foresaw, the whole story is told to the watcher."""
    if isinstance(error, HpcError | SharpError | OSError):
        return str(error)
    watcher.warning("".join(traceback.format_exception(error)).rstrip())
    return f"{type(error).__name__}: {error}"


def data_key(config: RunConfig) -> tuple[object, ...]:
    """Return what tells the reference data of configurations apart."""
    options = config.evaluation
    made = (options.validation + options.test, options.data_seed, options.reference, options.coarsen)
    return config.problem, options.data, made


def has_passed(folder: Path, share: Share) -> bool:
    """Whether the run of a donor that nobody works on has passed the stage that it shares."""
    try:
        record = read_run(run_path(folder, share.donor))
    except HpcError:
        return False
    return any(barrier.name == share.stage for barrier in record.barriers)
