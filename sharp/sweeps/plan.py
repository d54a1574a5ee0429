"""What a sweep would do now: which cells are done, which are new, who takes whose answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sharp.sweeps.cells import Cell, expand
from sharp.sweeps.conflicts import check_unchanged
from sharp.sweeps.file import SweepFile
from sharp.sweeps.folder import begun_runs
from sharp.sweeps.graph import Graph, Node, Share
from sharp.sweeps.identity import Identity, identity
from sharp.sweeps.library import Library
from sharp.sweeps.record import KnownCell, SweepRecord, read_record, state_of


@dataclass(frozen=True)
class SweepPlan:
    """A sweep as it stands. `begun` are the cells with a run directory, those that left the file included."""

    sweep: SweepFile
    folder: Path
    cells: tuple[Cell, ...]
    identities: Mapping[str, Identity]
    record: SweepRecord
    begun: frozenset[str]

    @cached_property
    def by_id(self) -> Mapping[str, Cell]:
        """The cells by id."""
        return {cell.id: cell for cell in self.cells}

    @cached_property
    def states(self) -> Mapping[str, str]:
        """Where each cell of the file stands."""
        return {cell.id: state_of(self.record, cell.id, begun=cell.id in self.begun) for cell in self.cells}

    @property
    def left(self) -> tuple[Cell, ...]:
        """The cells that are not finished."""
        return tuple(cell for cell in self.cells if self.states[cell.id] != "finished")

    @cached_property
    def graph(self) -> Graph:
        """Who may take whose answers; runs of cells that left the file still give theirs."""
        nodes = [
            Node(cell.id, self.identities[cell.id], cell.config.sampled, cell.id in self.begun)
            for cell in self.cells
        ]
        gone = sorted(self.begun & self.record.cells.keys() - self.by_id.keys())
        return Graph([*nodes, *(_node(name, self.record.cells[name]) for name in gone)])

    @cached_property
    def shares(self) -> Mapping[str, Share]:
        """What each cell that has not begun would take from which other."""
        return {cell: share for cell, share in self.graph.planned().items() if cell in self.by_id}

    def known(self) -> dict[str, KnownCell]:
        """Return the cells as the record keeps them."""
        return {cell.id: _known(cell, self.identities[cell.id]) for cell in self.cells}


def make_plan(sweep: SweepFile, folder: Path, library: Library) -> SweepPlan:
    """Return what a sweep would do in a directory.

    Raises `InputError` where the file is wrong, and `SweepChanged` where a run there was begun with another
    configuration than the file says now.
    """
    cells = expand(sweep)
    identities = {cell.id: identity(cell.config, library) for cell in cells}
    plan = SweepPlan(sweep, folder, cells, identities, read_record(folder), begun_runs(folder))
    check_unchanged(plan.cells, identities, plan.record, folder, plan.begun, library)
    return plan


def counts(plan: SweepPlan) -> dict[str, int]:
    """Return how many cells are in which state, those there are."""
    return dict(Counter(plan.states[cell.id] for cell in plan.cells))


def _known(cell: Cell, mine: Identity) -> KnownCell:
    return KnownCell(
        dict(cell.values), mine.whole, mine.analysis, mine.genesis, cell.config.sampled, mine.best_of_n
    )


def _node(name: str, known: KnownCell) -> Node:
    mine = Identity(known.whole, known.analysis, known.genesis, known.best_of_n)
    return Node(name, mine, known.candidates, begun=True)
