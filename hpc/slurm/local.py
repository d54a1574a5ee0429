"""Jobs as processes of this machine, behind the same client: a profile with `batch_system: local` needs no Slurm.

FOLDER/slurm/local/ARRAY_K.json       a job: token, name, process and its start, where it prints
FOLDER/slurm/local/ARRAY_K.exit       its exit code, once it has ended
FOLDER/slurm/local/ARRAY_K.cancelled  that somebody has cancelled it

All is read from these files, so that any process can ask, and jobs outlive the one that submitted them. Directives of
scripts that ask for nodes, memory or time are not heeded: `max_workers` of the profile bounds what runs at once.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hpc.files import make_directory, write_atomic
from hpc.processes import descendants
from hpc.slurm.client import QueueSnapshot, Slurm
from hpc.slurm.commands import clean_environment
from hpc.slurm.errors import SlurmRefused
from hpc.slurm.parsing import Job, array_id
from hpc.slurm.states import JobState

_DIRECTIVE = re.compile(r"^#SBATCH --([a-z-]+)=(.*)$", re.MULTILINE)
_FIRST = 1000
_started: list[subprocess.Popen[bytes]] = []  # they outlive this process: nobody waits for them
# The job ends with the exit code of its script, which is written down whoever waits for it.
_RUNNER = 'bash "$1"; code=$?; echo $code > "$2.tmp" && mv "$2.tmp" "$2"; exit $code'


class LocalJobs(Slurm):
    """Jobs of one campaign on this machine; arrays only, as controllers are steps by hand there."""

    def __init__(self, folder: Path) -> None:
        super().__init__(source="squeue")
        self._folder = folder

    def submit(self, script: str, *, token: str, arguments: Sequence[str] = ()) -> str:
        """Start the jobs of a script and return their id; raises `SlurmRefused` for what needs a real batch system."""
        make_directory(self._folder)
        directives = {name: "".join(shlex.split(value)) for name, value in _DIRECTIVE.findall(script)}
        if arguments or "dependency" in directives:
            raise SlurmRefused("Jobs of this machine have no dependencies: use `submit_from_compute: false`.")
        array = str(max((int(array_id(job)) for job in self._records()), default=_FIRST) + 1)
        path = self._folder / f"{array}.sh"
        write_atomic(path, script.encode())
        last = int(directives.get("array", "0-0").partition("-")[2].partition("%")[0])
        for number in range(last + 1):
            self._start(array, number, path, token, directives)
        return array

    def _start(
        self, array: str, number: int, script: Path, token: str, directives: Mapping[str, str]
    ) -> None:
        job = f"{array}_{number}"
        own = {"SLURM_JOB_ID": job, "SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": str(number)}
        pattern = directives.get("output", os.devnull).replace("%A", array).replace("%a", str(number))
        runner = ["bash", "-c", _RUNNER, "job", str(script), str(self._folder / f"{job}.exit")]
        with Path(pattern.replace("%%", "%")).open("ab") as output:
            process = subprocess.Popen(
                runner,
                env={**clean_environment(os.environ), **own, "SLURM_NTASKS": "1", "SLURM_PROCID": "0"},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        _started.append(process)
        record = {"token": token, "name": directives["job-name"], "pid": process.pid, "began": time.time()}
        write_atomic(
            self._folder / f"{job}.json", json.dumps({**record, "start": _start_of(process.pid)}).encode()
        )

    def find_by_token(self, token: str, *, days: int = 7) -> tuple[str, ...]:  # noqa: ARG002
        """Return the arrays that carry a token."""
        found = {array_id(job) for job, record in self._records().items() if record["token"] == token}
        return tuple(sorted(found, key=int))

    def snapshot(self, ids: Iterable[str]) -> QueueSnapshot:
        """Return what is known of some jobs."""
        wanted = set(ids)
        return QueueSnapshot({job.id: job for job in self._jobs() if wanted & {job.id, job.array_id}})

    def named(self, beginning: str) -> tuple[Job, ...]:
        """Return the jobs whose names begin so."""
        return tuple(job for job in self._jobs() if job.name.startswith(beginning))

    def history(self, ids: Iterable[str]) -> Mapping[str, Job]:
        """Return what is known of some jobs: there are no other accounts."""
        return self.snapshot(ids).jobs

    def memory_mb(self, ids: Iterable[str]) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing: nobody has measured it."""
        return {}

    def cancel(self, ids: Iterable[str]) -> None:
        """End jobs and all that they started."""
        wanted = set(ids)
        for job in self._jobs():
            if wanted & {job.id, job.array_id} and not job.state.ended:
                (self._folder / f"{job.id}.cancelled").touch()
                pid = self._records()[job.id]["pid"]
                for process in (*descendants(pid), pid):
                    with suppress(ProcessLookupError, PermissionError):
                        os.kill(process, signal.SIGTERM)

    def throttle(self, array: str, running: int) -> None:
        """Do nothing: the queue itself bounds what is taken at once."""

    def config(self) -> Mapping[str, str]:
        """Return the settings that are asked for."""
        return {"MaxArraySize": "1001"}

    def _records(self) -> dict[str, dict[str, Any]]:
        found = {}
        for path in self._folder.glob("*_*.json"):
            with suppress(OSError, ValueError):
                found[path.stem] = json.loads(path.read_bytes())
        return found

    def _jobs(self) -> Iterator[Job]:
        for job, record in self._records().items():
            elapsed = int(max(time.time() - record["began"], 0))
            name, state = record["name"], self._state(job, record)
            yield Job(job, state, "squeue", name=name, comment=record["token"], elapsed_s=elapsed)

    def _state(self, job: str, record: Mapping[str, Any]) -> JobState:
        with suppress(OSError, ValueError):
            code = int((self._folder / f"{job}.exit").read_text())
            return JobState.COMPLETED if code == 0 else self._failure(job)
        alive = record["start"] is not None and _start_of(record["pid"]) == record["start"]
        return JobState.RUNNING if alive else self._failure(job)

    def _failure(self, job: str) -> JobState:
        return JobState.CANCELLED if (self._folder / f"{job}.cancelled").exists() else JobState.FAILED


def _start_of(pid: int) -> str | None:
    """Return when a process started, in ticks since the machine did; None where there is none."""
    try:
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return None
    return None if state in "ZX" else fields[18]
