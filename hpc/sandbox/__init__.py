"""Running untrusted programs within bounds, and leaving nothing of them behind; see docs/sandbox.md."""

from __future__ import annotations

from hpc.sandbox.choice import Policy, Probed, open_interpreter, probe
from hpc.sandbox.interpreter import ColdInterpreter, WarmInterpreter
from hpc.sandbox.protocol import EVENTS_FD, Bounds, Completed, Interpreter
from hpc.sandbox.tiers import ApptainerSandbox, BubblewrapSandbox, LandlockSandbox, RlimitsSandbox, Tier
from hpc.sandbox.view import clean_environment, gpu_devices

__all__ = [
    "EVENTS_FD",
    "ApptainerSandbox",
    "Bounds",
    "BubblewrapSandbox",
    "ColdInterpreter",
    "Completed",
    "Interpreter",
    "LandlockSandbox",
    "Policy",
    "Probed",
    "RlimitsSandbox",
    "Tier",
    "WarmInterpreter",
    "clean_environment",
    "gpu_devices",
    "open_interpreter",
    "probe",
]
