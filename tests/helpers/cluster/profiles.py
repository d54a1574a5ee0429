"""Profiles of clusters, all roles of which are the same and ask for next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from hpc.slurm import ClusterProfile, RoleName

ONE_ROLE: Mapping[str, Any] = {"time": "10min", "memory": "400MB"}


def profile_of(role: Mapping[str, Any] | None = None, **changes: Any) -> ClusterProfile:
    """Return a profile named `here`, with changes to its roles and to itself."""
    roles = {name: {**ONE_ROLE, **(role or {})} for name in get_args(RoleName)}
    fields = {"name": "here", "job_state_source": "squeue", "roles": roles, **changes}
    return ClusterProfile.model_validate(fields)
