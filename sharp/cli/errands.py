"""Which errand a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharp.cluster.errand import Errand


def errand_in(folder: Path) -> Errand:
    """Return what a folder holds for a cluster to carry out; raises `RunDirectoryError` where it holds nothing."""
    from sharp.cluster.errand import RunErrand
    from sharp.sweeps.folder import is_sweep

    if is_sweep(folder):
        from sharp.sweeps.errand import SweepErrand

        return SweepErrand.of(folder)
    return RunErrand.of(folder)
