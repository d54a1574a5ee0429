"""A sweep as a cluster's controllers see it: one campaign, in whose event loop, queue and servers all runs share."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Self, get_args

from hpc.errors import RunDirectoryError
from hpc.recovery import journal_file
from hpc.slurm.profile import Cluster
from sharp.cluster.control import TRANSIENT
from sharp.cluster.errand import Step
from sharp.cluster.evaluator import check_walltime
from sharp.errors import CellsFailed
from sharp.evaluation.protocol import Split
from sharp.llm.cards import ModelCard
from sharp.llm.hosting import is_hosted, server_plans
from sharp.runs.advance import Leave, Warn
from sharp.runs.directory import check_models
from sharp.runs.site import Site
from sharp.stages.session import request_of
from sharp.sweeps.cells import Cell
from sharp.sweeps.file import read_sweep
from sharp.sweeps.folder import is_sweep, run_path, sweep_file
from sharp.sweeps.library import Library
from sharp.sweeps.local import in_hand, make_purse
from sharp.sweeps.plan import SweepPlan, make_plan
from sharp.sweeps.play import Player, SweepOutcome, play_with_heart
from sharp.sweeps.progress import watching_sweep
from sharp.sweeps.site import SharedSite
from sharp.sweeps.status import sweep_in_words, view_sweep

_EFFECT = b'"event":"effect"'


class SweepErrand:
    """One sweep; what its file says is read again at every step, so that rows may be added while it goes on."""

    module = "sharp.sweeps.controller"

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Return the sweep that lies in a folder; raises `RunDirectoryError` where there is none."""
        if not is_sweep(folder):
            raise RunDirectoryError(f"{folder} holds no sweep (there is no {sweep_file(folder)})")
        return cls(folder)

    @property
    def cards(self) -> Collection[ModelCard]:
        """The models of the cells that are left."""
        library = Library()
        return library.cards_asked(cell.config for cell in self._plan(library).left)

    def progress(self) -> int:
        """Return how many effects all runs have recorded."""
        plan = self._plan(Library())
        return sum(self._recorded(plan, cell) for cell in plan.begun)

    def check(self, cluster: Cluster) -> None:
        """Raise `ConfigurationError` where a model or an evaluation of a cell cannot be had on a cluster."""
        library = Library()
        cells = self._plan(library).left
        cards = library.cards_asked(cell.config for cell in cells)
        server_plans(cards, cluster)
        check_models(card for card in cards if not is_hosted(card))
        checked: set[object] = set()
        for cell in cells:
            limits = (cell.config.problem, cell.config.evaluation.model_dump_json())
            if limits not in checked:
                checked.add(limits)
                _check_evaluations(cell, library, cluster)

    async def step(self, site: Site, leave: Leave, warn: Warn) -> Step:
        """Carry all runs on until they rest, with table and report written, or `leave` returns.

        Raises `CellsFailed` where some have failed for good, or what may be over when they are tried again.
        """
        plan = self._plan(Library())
        with in_hand(plan) as (writer, lease), watching_sweep(plan) as view:
            shared = SharedSite(site, make_purse(plan, warn))
            player = Player(plan, writer, shared, view, leave=leave, on_cluster=True)
            outcome = await play_with_heart(player, lease)
        return self._step(plan, outcome)

    def _step(self, plan: SweepPlan, outcome: SweepOutcome) -> Step:
        if outcome.stopped is not None:
            raise outcome.stopped
        if outcome.left:
            return Step(False, outcome.waiting_for)
        if sweep_file(self.folder).read_bytes() != plan.sweep.frozen():
            return Step(False, ("the cells that were added to the sweep file",))
        passing = next((error for error in outcome.errors.values() if isinstance(error, TRANSIENT)), None)
        if passing is not None:
            raise passing
        if outcome.errors:
            raise CellsFailed(_failed(outcome, self.folder))
        return Step(True, sentence=sweep_in_words(view_sweep(self.folder)).splitlines()[-1])

    def _plan(self, library: Library) -> SweepPlan:
        return make_plan(read_sweep(sweep_file(self.folder)), self.folder, library)

    def _recorded(self, plan: SweepPlan, cell: str) -> int:
        """Count the effects of a run: by its row once it is finished, else by its journal."""
        row = plan.record.rows.get(cell)
        if row is not None and row.state == "finished":
            return row.effects
        try:
            return journal_file(run_path(self.folder, cell)).read_bytes().count(_EFFECT)
        except OSError:
            return 0


def _check_evaluations(cell: Cell, library: Library, cluster: Cluster) -> None:
    for split in get_args(Split):
        request = request_of(cell.config, library.problem_of(cell.config), "", "", split)
        check_walltime(cluster, request)


def _failed(outcome: SweepOutcome, folder: Path) -> str:
    names = list(outcome.errors)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    first = next(iter(outcome.errors.values()))
    return (
        f"All other cells are finished, but {len(names)} failed: {', '.join(names[:3])}{more}; the first with: {first} "
        f"The table is in {folder}."
    )
