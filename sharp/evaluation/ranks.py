"""One evaluation over MPI ranks: `mpiexec -n K python -P -m sharp.evaluation.ranks --folder FOLDER`.

All ranks go through the same program. Each runs parts of the samples in an interpreter of its own, and all have to
see the folder; rank 0 alone scores what comes together and writes the result. Whatever fails ends all ranks.

A rank that ends before MPI is set up leaves the others waiting: hence all else is imported after it.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sharp.evaluation.launcher import RANKS

if TYPE_CHECKING:
    from mpi4py.MPI import Intracomm


def main(arguments: Sequence[str] | None = None) -> int:
    """Evaluate the folder; return the exit code, or end all ranks where this one cannot go on."""
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # no library of MPI is a RuntimeError
        _say(f"mpi4py cannot be loaded ({error}); shards over MPI ranks need: pip install 'pde-sharp[mpi]'")
        return 1
    comm = MPI.COMM_WORLD
    try:
        return _evaluate(comm, arguments)
    except BaseException as error:  # noqa: BLE001  the other ranks would wait forever
        traceback.print_exc()
        _say(f"rank {comm.rank}: {type(error).__name__}: {error}")
        comm.Abort(1)


def _evaluate(comm: Intracomm, arguments: Sequence[str] | None) -> int:
    from hpc.processes import die_with_parent
    from hpc.sandbox import SandboxPolicy
    from sharp.evaluation.mpi_executor import CollectiveError, evaluate_over
    from sharp.evaluation.worker import parser

    die_with_parent()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    options = parser(RANKS, __doc__, one=True).parse_args(arguments)
    try:
        evaluate_over(comm, options.folder, SandboxPolicy(options.sandbox, options.require, options.image))
    except CollectiveError as error:
        if comm.rank == 0:
            _say(str(error))
        return 1
    return 0


def _say(sentence: str) -> None:
    print(f"{RANKS}: {sentence}", file=sys.stderr, flush=True)  # noqa: T201  read by whoever started the ranks


if __name__ == "__main__":
    sys.exit(main())
