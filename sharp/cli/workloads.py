"""Which errand a folder holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sharp.experiments.sweeps.workload import SweepWorkload
    from sharp.runs.cluster.workload import RunWorkload


def workload_in(folder: Path) -> RunWorkload | SweepWorkload:
    """Return what a folder holds for a cluster to carry out; raises `RunDirectoryError` where it holds nothing."""
    from sharp.api import report_of
    from sharp.experiments.sweeps.folder import is_sweep
    from sharp.runs.cluster.workload import RunWorkload

    if is_sweep(folder):
        from sharp.experiments.sweeps.workload import SweepWorkload

        return SweepWorkload.of(folder)
    return RunWorkload.of(folder, report_of)
