"""Running Slurm's commands: one clean environment, a limit on every wait, errors that say what to do."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hpc.slurm.errors import SlurmMissing, SlurmUnreachable, failure

JOB = "HPC_JOB"
"""The variable that tells the job to processes that get none of Slurm's own variables."""
INSTALLATION = "Run this on a login node of the cluster (or load the module of its batch system)"

# Variables that change what a command asks or prints; a job inherits many from the job that submits it.
_FOREIGN = (
    *("SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "SALLOC_", "SQUEUE_", "SACCT_", "SINFO_", "SCANCEL_"),
    *("SCONTROL_", "PMI_", "PMIX_", "OMPI_"),
)
_KEPT = frozenset({"SLURM_CONF", "SLURM_CONF_SERVER"})
# Id lists in full, times in one form.
_ADDED = {"SLURM_BITSTR_LEN": "0", "SLURM_TIME_FORMAT": "standard"}


def current_job_id(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of the job that a process with these variables works for, `17` or `17_3`; None outside of one."""
    array, index = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    own = f"{array}_{index}" if array and index else environment.get("SLURM_JOB_ID")
    return own or environment.get(JOB)


def worker_name(environment: Mapping[str, str] = os.environ) -> str:
    """Return the name of this process as a worker: its job's id and how often Slurm restarted that, `17_3.0`."""
    job = current_job_id(environment) or f"p{os.getpid()}"
    return f"{job}.{environment.get('SLURM_RESTART_COUNT') or 0}"


def job_of(worker: str) -> str:
    """Return the id, as Slurm shows it, of the job that a worker is."""
    return worker.rpartition(".")[0]


def slot_worker(worker: str, slot: str) -> str:
    """Return the name of a worker that is one of several in its job: `17_3.0-2`."""
    return f"{worker}-{slot}"


def start_of(worker: str) -> str:
    """Return a worker's name without its slot: those of one start of a job have the same."""
    job, _, start = worker.rpartition(".")
    return f"{job}.{start.partition('-')[0]}"


def node_name() -> str:
    """Return what Slurm calls this node, or else its own name."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without what a job got from its own Slurm and what changes commands' answers."""
    return {
        name: value
        for name, value in environment.items()
        if name in _KEPT or not name.startswith(_FOREIGN)
    } | _ADDED  # fmt: skip


@dataclass(frozen=True)
class Commands:
    """How commands are run: with which variables, and for how long they may take.

    A question is asked again after each of `pauses_s` while Slurm does not answer; a submission never is.
    """

    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    question_s: float = 30.0
    # sbatch itself waits two minutes where the cluster's job table is full.
    submission_s: float = 150.0
    pauses_s: Sequence[float] = (1.0, 3.0, 9.0, 27.0)
    sleep: Callable[[float], None] = time.sleep

    def find(self, program: str) -> str | None:
        """Return the path of a program, or None."""
        return shutil.which(program, path=self.environment.get("PATH"))

    def run(self, argv: Sequence[str], *, limit_s: float, stdin: str = "", folder: Path | None = None) -> str:
        """Run a command once, in a folder, and return its standard output; raises `SlurmError`."""
        program = self.find(argv[0])
        if program is None:
            raise SlurmMissing(f"There is no command {argv[0]!r}. {INSTALLATION}.")
        try:
            done = subprocess.run(
                [program, *argv[1:]],
                input=stdin,
                env=clean_environment(self.environment),
                cwd=folder,
                capture_output=True,
                encoding="utf-8",
                errors="surrogateescape",
                timeout=limit_s,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise SlurmUnreachable(f"{argv[0]} gave no answer within {limit_s:g} s.") from None
        except OSError as error:
            raise SlurmMissing(f"{program} cannot be run: {error.strerror}. {INSTALLATION}.") from None
        if done.returncode:
            raise failure(argv[0], done.stderr or done.stdout, done.stdout)
        return done.stdout

    def ask(self, argv: Sequence[str]) -> str:
        """Run a command that changes nothing, or may be repeated; raises `SlurmError`."""
        return self.retry(lambda: self.run(argv, limit_s=self.question_s))

    def retry(self, attempt: Callable[[], str]) -> str:
        """Try again after each pause while Slurm does not answer; raises `SlurmError`."""
        for pause in self.pauses_s:
            try:
                return attempt()
            except SlurmUnreachable:
                self.sleep(pause)
        return attempt()
