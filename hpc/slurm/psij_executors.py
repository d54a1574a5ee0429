"""PSI/J's executors of batch systems as we use them; imports `psij`, so this module is imported where that is needed.

PSI/J writes scripts with a system's directives, and reads what its commands print. Commands run with our limits of
time, and no thread asks about jobs by itself.
"""

from __future__ import annotations

import io
import json
import re
import shlex
from abc import ABC
from collections.abc import Collection, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import IO, Any

import psij
from psij.executors.batch.batch_scheduler_executor import BatchSchedulerExecutor, BatchSchedulerExecutorConfig
from psij.executors.batch.lsf import LsfJobExecutor
from psij.executors.batch.pbs import PBSJobExecutor
from psij.executors.batch.pbs_classic import PBSClassicJobExecutor

from hpc.slurm.commands import Commands
from hpc.slurm.errors import SlurmRefused, SlurmUnreachable
from hpc.slurm.profile import RESERVED

# Said in another way, or without a counterpart. All other directives are the batch system's own options.
_SAID = RESERVED | {"ntasks", "gres", "no-requeue", "requeue"}
_NAME_CHARACTERS = 15  # of a job's name, as PBS takes it
_REASONS = ("EXIT_REASON", "KILL_REASON", "SUSPEND_REASON")
_FLUX = {
    "RUN": psij.JobState.ACTIVE,
    "CLEANUP": psij.JobState.ACTIVE,
    "COMPLETED": psij.JobState.COMPLETED,
    "FAILED": psij.JobState.FAILED,
    "TIMEOUT": psij.JobState.FAILED,
    "CANCELED": psij.JobState.CANCELED,
}


class Executor(BatchSchedulerExecutor, ABC):
    """What all of them have in common; `options` is PSI/J's name for a system's own options, such as `pbs`."""

    options: str

    def __init__(self, folder: Path, commands: Commands) -> None:
        self._commands = commands
        super().__init__(None, BatchSchedulerExecutorConfig(work_directory=folder))

    @property
    def name(self) -> str:
        """The name of the folder of scripts."""
        return self.options

    def send(self, command: Sequence[str], asked: Mapping[str, str]) -> str:
        """Submit a command and return the job's id; `asked` are sbatch's options. Raises `SlurmError`."""
        job = psij.Job(self._specification(command, asked))
        try:
            self.submit(job)
        except (psij.SubmitException, ValueError, IndexError) as error:
            raise SlurmUnreachable(f"The batch system answered without the id of a job: {error}") from None
        if not job.native_id:
            raise SlurmUnreachable("The batch system answered without the id of a job.")
        return job.native_id

    def _specification(self, command: Sequence[str], asked: Mapping[str, str]) -> psij.JobSpec:
        gpus = re.search(r"(\d+)$", asked.get("gres", ""))
        resources = psij.ResourceSpecV1(
            node_count=1,
            process_count=int(asked.get("cpus-per-task", 1)),
            gpu_cores_per_process=int(gpus[1]) if gpus else None,
            memory=int(asked["mem"].removesuffix("M")) << 20 if "mem" in asked else None,
            exclusive_node_use="exclusive" in asked,
        )
        attributes = psij.JobAttributes(
            duration=timedelta(minutes=int(asked["time"])),
            queue_name=asked.get("partition"),
            account=asked.get("account"),
            reservation_id=asked.get("reservation"),
            custom_attributes={
                f"{self.options}.{name}": value for name, value in asked.items() if name not in _SAID
            },
        )
        return psij.JobSpec(
            name=asked["job-name"],
            executable=command[0],
            arguments=list(command[1:]),
            resources=resources,
            attributes=attributes,
        )

    def _run_command(self, cmd: list[str]) -> str:
        return self._run(cmd)

    def _run(self, argv: Sequence[str], stdin: str = "") -> str:
        # Batch systems put what they or a job print themselves where a job was submitted, whatever its script says.
        limit_s, folder = self._commands.submission_s, self.work_directory
        return self._commands.run(argv, limit_s=limit_s, stdin=stdin, folder=folder)

    def _start_queue_poll_thread(self) -> Any:
        return _NoThread()


class _NoThread:
    def register_job(self, job: psij.Job) -> None:
        """Do nothing: jobs are asked about when somebody wants to know."""


class _Pbs(Executor):
    options = "pbs"

    def _specification(self, command: Sequence[str], asked: Mapping[str, str]) -> psij.JobSpec:
        # PSI/J's templates name no job; without its campaign's id the name fits.
        named = {"N": re.sub("-.*-", "-", asked["job-name"])[:_NAME_CHARACTERS], "r": "n"}
        return super()._specification(command, {**asked, **named})


class PbsProExecutor(_Pbs, PBSJobExecutor):
    """PBS Professional and OpenPBS, with the GPUs that PSI/J leaves out."""

    def generate_submit_script(self, job: psij.Job, context: dict[str, object], submit_file: IO[str]) -> None:
        """Write the script of a job."""
        text = io.StringIO()
        super().generate_submit_script(job, context, text)
        assert job.spec is not None
        assert isinstance(job.spec.resources, psij.ResourceSpecV1)
        gpus = job.spec.resources.gpu_cores_per_process
        chunk = f":ngpus={gpus}:mpiprocs=" if gpus else ":mpiprocs="
        submit_file.write(text.getvalue().replace(":mpiprocs=", chunk, 1))


class PbsClassicExecutor(_Pbs, PBSClassicJobExecutor):
    """PBS with `-l nodes=1:ppn=N`."""


class LsfExecutor(Executor, LsfJobExecutor):
    """IBM Spectrum LSF."""

    options = "lsf"

    def _specification(self, command: Sequence[str], asked: Mapping[str, str]) -> psij.JobSpec:
        found = super()._specification(command, {**asked, "J": asked["job-name"]})
        assert isinstance(found.resources, psij.ResourceSpecV1)
        if (
            gpus := found.resources.gpu_cores_per_process
        ):  # PSI/J counts those of a task, of which there is one a CPU
            found.resources.gpu_cores_per_process = None
            found.attributes.set_custom_attribute("lsf.gpu", f"num={gpus}")
        return found

    def _run_command(self, cmd: list[str]) -> str:
        # bsub reads directives from its standard input, and from a file only where LSF was set up so.
        return self._run(cmd[:1], Path(cmd[1]).read_text()) if cmd[0] == "bsub" else self._run(cmd)

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, psij.JobStatus]:
        """Return the states of jobs; reasons, which PSI/J cannot read, are left out."""
        found = json.loads(out)
        for record in found["RECORDS"]:
            record |= dict.fromkeys(_REASONS, "")
        return super().parse_status_output(exit_code, json.dumps(found))


class FluxExecutor(Executor):
    """Flux by its commands: its bindings for Python, which PSI/J uses, keep jobs in the process that submits them."""

    options = "flux"

    def generate_submit_script(self, job: psij.Job, context: dict[str, Any], submit_file: IO[str]) -> None:
        """Write the script of a job."""
        assert job.spec is not None
        assert isinstance(job.spec.resources, psij.ResourceSpecV1)
        resources, attributes = job.spec.resources, job.spec.attributes
        wanted = {
            "job-name": job.spec.name,
            "nslots": 1,
            "cores-per-slot": resources.process_count,
            "gpus-per-slot": resources.gpu_cores_per_process,
            "time-limit": f"{attributes.duration.total_seconds() / 60:.0f}m",
            "queue": attributes.queue_name,
            "bank": attributes.account,
            "output": "/dev/null",
            **{name.partition(".")[2]: value for name, value in (attributes.custom_attributes or {}).items()},
        }
        lines = [f"#flux: --{name}={value}" for name, value in wanted.items() if value is not None]
        lines += ["#flux: --exclusive"] if resources.exclusive_node_use else []
        command = shlex.join(context["psij"]["launch_command"])
        submit_file.write("\n".join(["#!/bin/bash", *lines, command, ""]))

    def get_submit_command(self, job: psij.Job, submit_file_path: Path) -> list[str]:  # noqa: ARG002
        """Return the command that submits a script."""
        return ["flux", "batch", str(submit_file_path)]

    def job_id_from_submit_output(self, out: str) -> str:
        """Return the id that was answered."""
        return _plain(out.split()[-1])

    def get_cancel_command(self, native_id: str) -> list[str]:
        """Return the command that ends a job."""
        return ["flux", "cancel", native_id]

    def process_cancel_command_output(self, exit_code: int, out: str) -> None:
        """Raise `SlurmRefused`: a job could not be cancelled."""
        raise SlurmRefused(f"flux cancel ended with code {exit_code}: {out}")

    def get_status_command(self, native_ids: Collection[str]) -> list[str]:
        """Return the command that lists jobs."""
        return ["flux", "jobs", "--no-header", "--format={id.f58} {status}", *native_ids]

    def parse_status_output(self, exit_code: int, out: str) -> dict[str, psij.JobStatus]:  # noqa: ARG002
        """Return the states of jobs; those that wait for anything are queued."""
        rows = [line.split() for line in out.splitlines()]
        return {
            _plain(row[0]): psij.JobStatus(_FLUX.get(row[1], psij.JobState.QUEUED))
            for row in rows
            if len(row) == 2
        }

    def get_list_command(self) -> list[str]:
        """Return the command that lists this user's jobs."""
        return ["flux", "jobs", "--no-header", "--format={id.f58}"]


def _plain(native_id: str) -> str:
    """Return an id of Flux without the letter that some terminals cannot show."""
    return native_id.replace("ƒ", "f")


def make_executor(system: str, folder: Path, commands: Commands) -> Executor:
    """Return the executor of a batch system; its scripts go to a folder that compute nodes see."""
    kinds: dict[str, type[Executor]] = {
        "pbs": PbsProExecutor,
        "pbs_classic": PbsClassicExecutor,
        "lsf": LsfExecutor,
        "flux": FluxExecutor,
    }
    return kinds[system](folder, commands)
