"""Where programs that nobody has read run one after the other: a folder and an interpreter of the sandbox."""

from __future__ import annotations

import atexit
import os
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import Lock

from hpc.sandbox import Answer, Bounds, Completed, Policy, no_answer, open_interpreter
from sharp.evaluation.calls import Work
from sharp.evaluation.candidate import Result, run_candidate
from sharp.evaluation.protocol import Limits
from sharp.evaluation.scratch import remove_tree, scratch_folder

# Imported once for all programs: what takes longest of that which solvers import.
_PRELOADED = ("numpy", "scipy.integrate", "scipy.interpolate", "scipy.optimize", "scipy.sparse.linalg")


class Room:
    """A folder, and an interpreter that has imported what programs import.

    It stays open to the end of the process, because solutions are asked for values as long as they are in use.
    """

    def __init__(self) -> None:
        self._interpreter = open_interpreter(Policy())
        self._folder = Path(tempfile.mkdtemp(prefix="programs-"))
        self._lock = Lock()

    def run(
        self,
        script: Path,
        *,
        scratch: Path,
        bounds: Bounds,
        environment: Mapping[str, str],
        preload: Sequence[str] = (),  # noqa: ARG002  the same for all
        answer: Answer = no_answer,
    ) -> Completed:
        """Run a script as an `Interpreter` does."""
        return self._interpreter.run(
            script,
            scratch=scratch,
            bounds=bounds,
            environment=environment,
            preload=_PRELOADED,
            answer=answer,
        )

    def result(self, code: str, work: Work, limits: Limits) -> Result:
        """Return what the first call of a program came to; raises `InfrastructureError` for the machine's faults."""
        with self._lock, scratch_folder("program-", self._folder) as scratch:
            return run_candidate(code, work, limits, None, self, scratch).first

    def close(self) -> None:
        """End the interpreter and remove the folder."""
        self._interpreter.close()
        remove_tree(self._folder)


def room() -> Room:
    """Return the room of this process: one inherited by a fork would be shared with its parent."""
    return _room_of(os.getpid())


@cache
def _room_of(process: int) -> Room:
    del process
    opened = Room()
    atexit.register(opened.close)
    return opened
