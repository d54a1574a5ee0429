"""Drafting a profile from what a cluster says of itself, as a commented YAML file for a person to correct."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence

from hpc.slurm.errors import SlurmError
from hpc.slurm.parsing import Partition

_DAY_S = 24 * 3600
_FOREVER = 10**9
_PARALLEL = 8


# What a role would like to have: seconds, CPUs, MB.
_SIZES = {
    "controller": (_DAY_S, 1, 4096),
    "server": (_DAY_S // 2, 16, 65536),
    "evaluate": (3600, 8, 32768),
}

_TEXT = """\
{heading}
# Partitions seen:
{partitions}
name: {name}
description: {description}
{account}
gpu_request: {gpu_request}
unsupported_options: []           # options of sbatch that this cluster rejects
submit_from_compute: true     # set to false where jobs may not call sbatch
job_state_source: {status}
limits: {{}}                    # MaxArraySize is {max_array} here; max_jobs: your own limit on jobs at once
python: {python}
# One job for every `items_per_worker` evaluations that wait, `max_workers` at once; each stays `idle_timeout` when
# there is nothing to do.
dispatch: {{items_per_worker: 1, max_workers: {parallel}, idle_timeout: 10min}}
# What serves models, in an environment of its own; jobs for each model. model_paths: {{card: /folder/of/the/model}}
serving: {{command: vllm serve, replicas: 1}}
model_paths: {{}}
# scratch: $TMPDIR            # a fast folder of the compute node, where its variable is set
# Where batch jobs do not know `module`, the first line is: source /etc/profile
setup: []                     # lines of shell before everything else, such as "module load cuda"
roles:
{roles}
"""


def draft_profile(
    name: str,
    partitions: Sequence[Partition],
    config: Mapping[str, str],
    accounts: Sequence[str] = (),
    *,
    heading: str = "# Drafted from Slurm. Check every line, then test it.",
) -> str:
    """Return the text of a profile under comment lines for a heading; raises `SlurmError` where no partition is up."""
    up = [partition for partition in partitions if partition.up]
    if not up:
        raise SlurmError("No partition of this cluster is up; `sinfo` shows them. Try again later.")
    worker = max(up, key=lambda partition: (partition.gpus > 0, partition.default, partition.nodes))
    steady = max(up, key=lambda partition: (partition.gpus == 0, _limit_s(partition), partition.default))
    chosen = {"controller": steady, "server": worker, "evaluate": worker}
    on_cpus = []
    if worker.gpus:  # which of them programs compute on is not known here
        role = _role("evaluate", worker if steady.gpus else steady, *_SIZES["evaluate"], may_have_gpus=False)
        on_cpus = [f"  # where programs compute on CPUs alone, {role.strip()}"]
    accounting = config.get("AccountingStorageType", "")
    kind = f"gpu:{worker.gpu_type}" if worker.gpu_type else "gpu"
    return _TEXT.format(
        heading=heading,
        name=name,
        description=json.dumps(f"{config.get('ClusterName', 'a cluster')}, drafted from sinfo and scontrol"),
        partitions="\n".join(map(_describe, partitions)),
        account=_account(accounts),
        gpu_request=json.dumps(f"gres={kind}:{{gpus}}"),
        status="squeue" if accounting.endswith("/none") else "auto",
        max_array=config.get("MaxArraySize", "1001"),
        python=json.dumps(sys.executable),
        # One evaluating job for each GPU or node.
        parallel=max(1, min(_PARALLEL, worker.nodes * max(worker.gpus, 1))),
        roles="\n".join([*(_role(role, chosen[role], *size) for role, size in _SIZES.items()), *on_cpus]),
    )


def _describe(partition: Partition) -> str:
    limit = "no limit" if partition.limit_s is None else _time(partition.limit_s)
    gpus = f", {partition.gpus} GPUs {partition.gpu_type}".rstrip() if partition.gpus else ""
    state = "" if partition.up else ", down"
    size = f"{partition.nodes} nodes of {partition.cpus} CPUs, {partition.memory_mb} MB"
    return f"#   {partition.name}: {size}{gpus}, {limit}{state}"


def _account(accounts: Sequence[str]) -> str:
    if len(accounts) == 1:
        return f"account: {json.dumps(accounts[0])}"
    known = f"; yours: {', '.join(accounts)}" if accounts else ""
    return f"account: null                 # whom to charge{known}"


def _role(
    role: str, partition: Partition, time_s: int, cpus: int, memory_mb: int, *, may_have_gpus: bool = True
) -> str:
    gpus = 1 if partition.gpus and role != "controller" and may_have_gpus else 0
    share = max(partition.gpus, 1) if gpus else 1
    values = {
        "partition": json.dumps(partition.name),
        "time": _time(min(time_s, _limit_s(partition))),
        "cpus": max(min(cpus, partition.cpus // share), 1),
        "memory": f"{max(min(memory_mb, partition.memory_mb * 9 // 10 // share), 1)}MB",
    } | ({"gpus": gpus} if gpus else {})
    return f"  {role}: {{{', '.join(f'{key}: {value}' for key, value in values.items())}}}"


def _time(seconds: int) -> str:
    return f"{seconds // 3600}h" if seconds % 3600 == 0 else f"{seconds // 60}min"


def _limit_s(partition: Partition) -> int:
    return _FOREVER if partition.limit_s is None else partition.limit_s
