"""Checks of a cluster profile against itself: figures that would not work together."""

from __future__ import annotations

from collections.abc import Iterator

from hpc.doctor.findings import Finding, good, warning
from hpc.slurm.profile import Cluster

_DISPATCH, _SERVING = "section dispatch", "section serving"


def check_profile(cluster: Cluster) -> Iterator[Finding]:
    """Compare the sections `dispatch` and `serving` with the roles and limits that they live by."""
    for section, faults in ((_DISPATCH, _dispatch(cluster)), (_SERVING, _serving(cluster))):
        found = list(faults)
        yield from found or [good(section, "it fits the roles and limits of the profile")]


def _dispatch(cluster: Cluster) -> Iterator[Finding]:
    dispatch, limit = cluster.dispatch, cluster.limits.max_jobs
    time_s = 60 * cluster.roles.evaluate.time
    # A controller, its successor, and at least one to evaluate.
    least = 3 if cluster.submit_from_compute else 1
    if limit is not None and limit < least:
        found = f"limits.max_jobs is {limit}; a controller, its successor and an evaluation are {least} jobs"
        yield warning(_DISPATCH, found, f"Set `limits.max_jobs` to {least} or more.")
    elif limit is not None and dispatch.parallel > limit:
        found = f"dispatch.parallel is {dispatch.parallel}, but limits.max_jobs {limit}"
        yield warning(
            "dispatch", found, f"Set `dispatch.parallel` to {limit} or less, or raise `limits.max_jobs`."
        )
    if dispatch.linger >= time_s:
        found = f"dispatch.linger is {dispatch.linger} s, the time of the role evaluate {time_s} s"
        yield warning(_DISPATCH, found, "Shorten `dispatch.linger`: jobs would wait away their whole time.")


def _serving(cluster: Cluster) -> Iterator[Finding]:
    serving, time_s = cluster.serving, 60 * cluster.roles.server.time
    if serving.lead + serving.drain >= time_s:
        found = (
            f"serving.lead and serving.drain are {serving.lead + serving.drain} s together, the time of the role "
            f"server is {time_s} s"
        )
        remedy = "Shorten them, or give `roles.server` more `time`: servers would be replaced as soon as they answer."
        yield warning(_SERVING, found, remedy)
    elif serving.ready_limit >= time_s:
        found = f"serving.ready_limit is {serving.ready_limit} s, the time of the role server {time_s} s"
        yield warning(_SERVING, found, "Shorten it, or give `roles.server` more `time`.")
