"""Which job of Slurm this process works for."""

from __future__ import annotations

import os
from collections.abc import Mapping

JOB = "SHARP_JOB"
"""The variable that tells the job to processes that get none of Slurm's own variables."""


def job_here(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of the job that a process with these variables works for, `17` or `17_3`; None outside of one."""
    array, index = environment.get("SLURM_ARRAY_JOB_ID"), environment.get("SLURM_ARRAY_TASK_ID")
    own = f"{array}_{index}" if array and index else environment.get("SLURM_JOB_ID")
    return own or environment.get(JOB)
