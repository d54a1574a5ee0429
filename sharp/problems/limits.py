"""Resource limits of one solver run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ResourceLimits:
    """Bounds on one candidate run: wall seconds, resident memory in MB, BLAS/XLA threads."""

    wall_s: float
    memory_mb: int = 8000
    threads: int = 1
