"""What can go wrong between this program and Slurm.

InfrastructureError
└── SlurmError               names the command and says what to do
    ├── SlurmMissing         the commands are not installed here
    ├── SlurmUnreachable     no answer: the request may or may not have been carried out
    └── SlurmRefused         Slurm said no: the same request will be refused again
        └── SlurmFull        a limit on jobs is reached: the same request will be taken when jobs have ended

ScriptError (HpcError)       a value cannot stand in a batch script
"""

from __future__ import annotations

from hpc.errors import HpcError, InfrastructureError


class SlurmError(InfrastructureError):
    """Slurm did not do what it was asked to; the message names the command and says what to do."""


class SlurmMissing(SlurmError):
    """Slurm's commands are not installed on this machine."""


class SlurmUnreachable(SlurmError):
    """Slurm gave no answer: whether the request was carried out is unknown."""

    transient = True


class SlurmRefused(SlurmError):
    """Slurm refused the request; it would be refused again. `printed` is what the command wrote all the same."""

    printed: str = ""


class SlurmFull(SlurmRefused):
    """A limit on the number of jobs is reached; the request can be made again when some have ended."""

    transient = True


class ScriptError(HpcError):
    """A value cannot stand in a batch script."""

    exit_code = 2


# Texts of Slurm 19.05 to 24.11, then of PBS, LSF and Flux, in lower case.
_UNREACHABLE = (
    "unable to contact slurm controller",
    "socket timed out",
    "connection refused",
    "connection timed out",
    "zero bytes were transmitted",
    "insane message length",
    "slurm_receive_msg",
    "slurm_load",
    "standby mode",
    "unable to resolve",
    "try again later",
    "protocol authentication error",
    "munge encode failed",
    "cannot connect to server",
    "communication failure",
    "lsf is down",
    "batch daemon not responding",
    "unable to connect to flux",
)
_FULL = (
    "resource temporarily unavailable",
    "temporarily unable to accept job",
    "job submit limit",
    "maxsubmitjob",
    "violates accounting/qos policy",
    "maximum number of jobs",
    "would exceed",
    "job limit exceeded",
)
_ADVICE = (
    ("invalid partition", "correct `partition` in the cluster profile; `sinfo -s` lists the partitions"),
    ("invalid account", "correct `account` in the cluster profile; `sacctmgr show assoc user=$USER` lists yours"),
    ("invalid qos", "correct `qos` in the cluster profile; `sacctmgr show assoc user=$USER` lists yours"),
    ("invalid feature", "correct `constraint` in the cluster profile; `sinfo -o '%P %f'` lists the features"),
    ("invalid generic resource", "correct `gpu_request` in the cluster profile; `sinfo -o '%P %G'` lists the GPUs"),
    ("node configuration is not available", "ask for less memory, fewer CPUs or fewer GPUs of one node"),
    ("invalid job array", "the array's last index must be below MaxArraySize; set `limits.max_array_size`"),
    ("time limit", "shorten `time` in the cluster profile; `sinfo -o '%P %l'` lists the limits"),
    ("unrecognized option", "name the option in `unsupported_options` of the cluster profile"),
    ("invalid directive", "name the option in `unsupported_options` of the cluster profile"),
    ("invalid job id", "the job has ended long ago, or was another cluster's"),
    ("configuration source", "set SLURM_CONF, or run this on a machine of the cluster"),
    ("access/permission denied", "the job is another user's, or compute nodes may not submit (`submit_from_compute`)"),
)  # fmt: skip


def failure(command: str, text: str, printed: str = "") -> SlurmError:
    """Return the error for a command that failed with a text on standard error, and what it printed beside."""
    said = " ".join(text.split()) or "it gave no reason"
    lowered = said.lower()
    sentence = f"{command}: {said}"
    # What cannot be loaded because it is not known was answered all the same.
    if any(part in lowered for part in _UNREACHABLE) and "invalid job id" not in lowered:
        return SlurmUnreachable(
            f"{sentence}. The batch system does not answer (on Slurm, `scontrol ping` tells when it does)."
        )
    if any(part in lowered for part in _FULL):
        return SlurmFull(
            f"{sentence}. The limit on jobs is reached: wait until some have ended, or lower `limits.max_jobs`."
        )
    advice = next((text for part, text in _ADVICE if part in lowered), None)
    refused = SlurmRefused(sentence + (f". What to do: {advice}." if advice else ""))
    refused.printed = printed
    return refused
