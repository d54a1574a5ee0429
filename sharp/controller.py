"""The controller job of a run or a sweep: `python -P -m sharp.controller FOLDER TOKEN`.

It listens for signals before it loads anything: one that came earlier would end it before it has a successor.
"""

from __future__ import annotations

import sys
from pathlib import Path

from hpc.campaign import StopSignal


def main() -> None:
    """Carry on what a folder holds for as long as this job may."""
    told = StopSignal()
    told.listen()
    from hpc.campaign import run_controller_job
    from sharp.api import workload_in
    from sharp.runs import CONTROLLER, render_script

    folder, token = sys.argv[1:]
    sys.exit(run_controller_job(CONTROLLER, Path(folder), token, workload_in, told, render_script))


if __name__ == "__main__":
    main()
