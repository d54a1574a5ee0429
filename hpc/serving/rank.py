"""One node's part of a server that spans several: started by srun on each of them.

    srun … python -P -m hpc.serving.rank COMMAND…      standard input: that of srun, from the first node's keeper

Adds the node's rank to the command; only the first node serves HTTP. Word to end comes through standard input, since
srun kills its tasks where it is told to end them, and brings other signals to all of a server's processes at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from hpc.serving.keeper import Keeper


def ranked(command: Sequence[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command for this node of the job."""
    rank = environment["SLURM_NODEID"]
    return (*command, f"--node-rank={rank}", *(() if rank == "0" else ("--headless",)))


def main(command: Sequence[str]) -> int:
    """Run the node's part until it ends; return 0 where it was told to end, else its exit code, 1 instead of 0.

    A failure makes srun end the other nodes' parts at once: right where a server ended by itself, whatever it calls
    that, but not while all of them are ending.
    """
    keeper = Keeper(ranked(command, os.environ))
    code = keeper.keep()
    return 0 if keeper.told else code or 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
