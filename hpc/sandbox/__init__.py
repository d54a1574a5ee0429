"""Running untrusted programs within bounds, and leaving nothing of them behind; see docs/sandbox.md."""

from __future__ import annotations

from hpc.sandbox.choice import Policy, Probed, open_interpreter, probe
from hpc.sandbox.interpreter import ColdInterpreter, WarmInterpreter
from hpc.sandbox.protocol import ANSWERS_FD, EVENTS_FD, Answer, Bounds, Completed, Interpreter, no_answer
from hpc.sandbox.tiers import ApptainerSandbox, BubblewrapSandbox, LandlockSandbox, RlimitsSandbox, Tier
from hpc.sandbox.view import clean_environment, gpu_devices

__all__ = [
    "ANSWERS_FD",
    "EVENTS_FD",
    "Answer",
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
    "no_answer",
    "open_interpreter",
    "probe",
]
