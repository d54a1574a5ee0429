"""The controller job of a sweep: `python -P -m sharp.sweeps.controller FOLDER TOKEN`.

As `sharp.cluster.controller`, it listens for signals before it loads anything.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sharp.cluster.told import Told


def main() -> None:
    """Carry a sweep on for as long as this job may."""
    told = Told()
    told.listen()
    from sharp.cluster.link import run_link
    from sharp.sweeps.errand import SweepErrand

    folder, token = sys.argv[1:]
    sys.exit(run_link(SweepErrand.module, Path(folder), token, SweepErrand.of, told))


if __name__ == "__main__":
    main()
