"""Results of different configurations never stand under one name: what a run began with, it keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from hpc.errors import RunDirectoryError
from hpc.records import first_difference
from sharp.config import RunConfig
from sharp.errors import ConfigurationError
from sharp.runs.manifest import read_manifest
from sharp.sweeps.cells import Cell
from sharp.sweeps.folder import run_path, runs_folder
from sharp.sweeps.identity import CHANGEABLE, Identity, identity
from sharp.sweeps.library import Library
from sharp.sweeps.record import SweepRecord

_SHOWN = 5


def check_unchanged(
    cells: Iterable[Cell],
    identities: Mapping[str, Identity],
    record: SweepRecord,
    folder: Path,
    begun: Set[str],
    library: Library,
) -> None:
    """Raise `ConfigurationError` where runs were begun with another configuration than their cells have now."""
    changed = [
        cell
        for cell in cells
        if cell.id in begun and _recorded(cell, record, folder, library) != identities[cell.id].whole
    ]
    if changed:
        raise ConfigurationError(_sentence(changed, folder, library))


def _recorded(cell: Cell, record: SweepRecord, folder: Path, library: Library) -> str:
    """Return the hash that a run was begun with; from the run itself where the record of the sweep is gone."""
    if cell.id in record.cells:
        return record.cells[cell.id].whole
    return identity(_begun_with(folder, cell.id), library).whole


def _begun_with(folder: Path, cell: str) -> RunConfig:
    """Return the configuration of a run, without the donor that the sweep gave it."""
    path = run_path(folder, cell)
    try:
        config = RunConfig.model_validate(read_manifest(path)["config"])
    except (ValidationError, KeyError) as error:
        raise RunDirectoryError(f"{path / 'run.yaml'} is damaged: {error}") from None
    reuse = config.genesis.reuse
    if reuse is None or reuse.parent != runs_folder(folder).absolute():
        return config
    own = config.genesis.model_copy(update={"reuse": None, "reuse_repairs": False})
    return config.model_copy(update={"genesis": own})


def _sentence(changed: list[Cell], folder: Path, library: Library) -> str:
    lines = [f"  {cell.id}: {_difference(cell, folder, library)}" for cell in changed[:_SHOWN]]
    more = [f"  and {len(changed) - _SHOWN} more"] if len(changed) > _SHOWN else []
    runs = "a run was" if len(changed) == 1 else f"{len(changed)} runs were"
    return "\n".join(
        [
            f"{folder}: {runs} begun with another configuration than the sweep file has now:",
            *lines,
            *more,
            "Undo the change, or make an axis of it, or give the sweep another directory: --folder DIR",
        ]
    )


def _difference(cell: Cell, folder: Path, library: Library) -> str:
    then, now = _plain(_begun_with(folder, cell.id)), _plain(cell.config)
    if then != now:
        return first_difference(then, now, "its configuration").removeprefix("its configuration.")
    manifest = read_manifest(run_path(folder, cell.id))
    if manifest["problem"]["hash"] != library.problem_of(cell.config).hash:
        return "the specification of its problem has changed"
    return "a card of its models has changed"


def _plain(config: RunConfig) -> dict[str, Any]:
    """Return a configuration with its defaults, so that both values of what changed can be named."""
    return config.model_dump(mode="json", exclude=CHANGEABLE)
