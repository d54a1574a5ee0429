"""The controller job of a run: `python -P -m sharp.cluster.controller FOLDER TOKEN`.

It listens for signals before it loads anything: one that came earlier would end it before it has a successor.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sharp.cluster.told import Told


def main() -> None:
    """Carry a run on for as long as this job may."""
    told = Told()
    told.listen()
    from sharp.cluster.errand import RunErrand
    from sharp.cluster.link import run_link

    folder, token = sys.argv[1:]
    sys.exit(run_link(RunErrand.module, Path(folder), token, RunErrand.of, told))


if __name__ == "__main__":
    main()
