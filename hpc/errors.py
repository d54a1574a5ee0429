"""The exceptions of the execution layer.

HpcError
├── RunDirectoryError        the run directory cannot be used as it is
│   ├── RunLocked            another controller works on this run
│   ├── Fenced               a newer controller has taken this run over; this one must stop
│   ├── RunVersionError      the run was written by an incompatible version
│   ├── JournalMismatch      a recorded effect was asked something else than now
│   └── StorageFull          a write failed for want of space or quota; what was recorded before stands
├── ReplayMiss               a replay needed an effect that was never recorded
├── WorkCancelled            somebody cancelled the jobs that the work was given to: it is not given to others
└── InfrastructureError      the machine failed, not the candidate: retried, never charged to a candidate
"""

from __future__ import annotations


class HpcError(Exception):
    """Base of all errors of the execution layer; the message is a sentence for the user."""


class RunDirectoryError(HpcError):
    """The run directory cannot be used as it is."""


class RunLocked(RunDirectoryError):
    """Another controller works on this run."""


class Fenced(RunDirectoryError):
    """A newer controller has taken this run over; this one must stop without writing."""


class RunVersionError(RunDirectoryError):
    """The run was written by an incompatible version of the software."""


class JournalMismatch(RunDirectoryError):
    """A recorded effect was asked something else than the program asks now."""


class StorageFull(RunDirectoryError):
    """A write failed for want of space or quota; everything recorded before it stands."""


class ReplayMiss(HpcError):
    """A replay needed an effect that was never recorded."""


class WorkCancelled(HpcError):
    """Somebody cancelled the jobs that the work was given to; it is not given to others."""


class InfrastructureError(HpcError):
    """The machine failed, not the candidate: to be retried, never charged to a candidate."""
