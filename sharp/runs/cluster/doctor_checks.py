"""What `sharp doctor` checks: this machine, Slurm as seen from here, and compute nodes by jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hpc.doctor import CheckRequest, Finding, NodeCheck, check_profile, examine, examine_submission, failure
from hpc.slurm import ClusterProfile, RoleName, Slurm, cluster_client, parse_minutes
from sharp.errors import InputError
from sharp.llm import list_cards, load_card
from sharp.runs.cluster.profiles import example_script, load_cluster, render_script

_NEEDED: dict[str, Any] = {"libraries": ("numpy", "scipy", "h5py", "jax", "zarr"), "package": "pde-sharp"}


def checkup(
    name: str | None,
    roles: Sequence[RoleName],
    folder: Path,
    wait_s: float,
    *,
    job: bool = True,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[Finding]:
    """Yield findings as they are made; `name` is that of a cluster profile, `tell` is told which job is waited for.

    Weights are looked for where the job runs, or here where there is none. Raises ConfigurationError for a
    profile that cannot be read.
    """
    cluster = None if name is None else load_cluster(name)
    on_nodes = cluster is not None and job
    weights = {} if on_nodes else _weights(cluster)
    yield from examine(CheckRequest(str(folder), shared=on_nodes, weights=weights, **_NEEDED))
    yield from _unknown_cards(cluster)
    if cluster is not None:
        yield from check_profile(cluster)
    with TemporaryDirectory(prefix=".doctor-", dir=folder if folder.is_dir() else None) as records:
        client = Slurm() if cluster is None else cluster_client(cluster, Path(records))
        yield from examine_submission(client, cluster, render_script)
        if cluster is not None and job:
            check = NodeCheck(client, cluster, render_script, folder, wait_s, tell=tell)
            for role in roles:
                yield from check.examine(role, order_for(cluster, role, folder))


def order_for(cluster: ClusterProfile, role: RoleName, folder: Path) -> CheckRequest:
    """Return what is to be checked on a compute node in one role."""
    submits = role == "controller" and cluster.submit_from_compute
    return CheckRequest(
        str(folder),
        gpus=cluster.role(role).gpus,
        jax=role == "evaluate",
        serving=cluster.serving.command if role == "server" else None,
        weights=_weights(cluster) if role == "server" else {},
        sandbox_tier=cluster.sandbox.tier,
        sandbox_required=cluster.sandbox.require,
        sandbox_image=cluster.sandbox.image,
        submission=example_script(cluster, "evaluate") if submits else None,
        **_NEEDED,
    )


def seconds(text: str) -> float:
    """Return the seconds of a time such as 10min or 2h; raises InputError."""
    try:
        return 60.0 * parse_minutes(text)
    except ValueError as error:
        raise InputError(f"--wait: {error}") from None


def _weights(cluster: ClusterProfile | None) -> dict[str, str]:
    """Return the folders that the profile names, and those that model cards give by an absolute path."""
    cards = [load_card(path) for path in list_cards().values()]
    absolute = {c.name: c.vllm.weights for c in cards if c.vllm and c.vllm.weights.startswith("/")}
    return {**absolute, **(cluster.model_paths if cluster else {})}


def _unknown_cards(cluster: ClusterProfile | None) -> Iterator[Finding]:
    known = list_cards()
    for name in sorted(set(cluster.model_paths if cluster else ()) - set(known)):
        remedy = f"Correct `model_paths` in the cluster profile. Cards: {', '.join(known)}."
        yield failure("model_paths", f"there is no model card {name!r}", remedy)
