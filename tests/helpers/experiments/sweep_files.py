"""Sweep files for tests, and what is made of them."""

from __future__ import annotations

from pathlib import Path

from sharp.experiments.sweeps.cells import Cell, expand
from sharp.experiments.sweeps.file import SweepFile, read_sweep
from sharp.experiments.sweeps.fingerprint import ResourceCache
from sharp.experiments.sweeps.plan import SweepPlan, make_plan

HEAD = "name: tried\nbase: burgers\n"


def read(folder: Path, text: str, name: str = "tried.yaml") -> SweepFile:
    """Write a sweep file and read it."""
    path = folder / name
    path.write_text(text)
    return read_sweep(path)


def cells_of(folder: Path, text: str) -> tuple[Cell, ...]:
    """The cells of a sweep over burgers with this matrix."""
    return expand(read(folder, HEAD + text))


def ids_of(folder: Path, text: str) -> list[str]:
    """Their ids."""
    return [cell.id for cell in cells_of(folder, text)]


def planned(folder: Path, text: str) -> SweepPlan:
    """The plan of a sweep over burgers, in `folder/sweep`."""
    return make_plan(read(folder, HEAD + text), folder / "sweep", ResourceCache())
