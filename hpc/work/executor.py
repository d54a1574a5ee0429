"""submitit's executor, but for the script and for how it gets to Slurm, which are ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from submitit.core.core import Job
from submitit.core.utils import DelayedSubmission
from submitit.slurm.slurm import SlurmExecutor, SlurmJob

_CALL = "call.pkl"
_MINUTES = 5  # submitit's limit for requeueing what can be requeued: nothing of ours is


class ArrayExecutor(SlurmExecutor):
    """Sends arrays whose elements all make the same call; `send` submits the script and returns the array's id.

    What submitit's runner looks for in the folder is made from one file, which is there before the array is sent: so
    an array whose id is learnt later, by whomever, can be given its files then (`put_in_place`).
    """

    def __init__(self, folder: Path, send: Callable[[], str]) -> None:
        super().__init__(folder)
        self._send = send

    @classmethod
    def affinity(cls) -> int:
        """Say that this can be used: whether there is Slurm is found out by sending."""
        return 2

    def _internal_process_submissions(
        self, delayed_submissions: Sequence[DelayedSubmission]
    ) -> list[Job[Any]]:
        call, *others = delayed_submissions
        assert all((other.function, other.args) == (call.function, call.args) for other in others)
        call.set_timeout(_MINUTES, 0)
        call.dump(self.folder / _CALL)
        array, count = self._send(), len(delayed_submissions)
        put_in_place(self.folder, array, count)
        return [SlurmJob(folder=self.folder, job_id=f"{array}_{k}", tasks=[0]) for k in range(count)]


def put_in_place(folder: Path, array: str, elements: int) -> None:
    """Give each element of an array the call that it is to make; do nothing where that is done."""
    for number in range(elements):
        with suppress(FileExistsError, FileNotFoundError):
            (folder / f"{array}_{number}_submitted.pkl").hardlink_to(folder / _CALL)
