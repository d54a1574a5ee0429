"""The exceptions of the execution layer, and the root of all that a user may meet.

ExpectedError
└── HpcError
    ├── RunDirectoryError        the run directory cannot be used as it is
    │   ├── RunLocked            another controller works on this run
    │   ├── LeaseLost            a newer controller has taken this run over; this one must stop
    │   ├── RunVersionError      the run was written by an incompatible version
    │   ├── JournalMismatch      a recorded effect was asked something else than now
    │   ├── StorageFull          a write failed for want of space or quota; what was recorded before stands
    │   └── StorageUnavailable   a write failed in a way that may pass: a server away, a right withdrawn
    ├── ReplayMiss               a replay needed an effect that was never recorded
    ├── WorkCancelled            somebody cancelled the jobs that the work was given to: it is not given to others
    └── InfrastructureError      the machine failed, not the candidate: retried, never charged to a candidate
"""

from __future__ import annotations

import errno
from typing import ClassVar


class ExpectedError(Exception):
    """Root of all foreseen errors: the message is a sentence for the user.

    `exit_code` is what a command ends with (docs/reference/cli.md); `transient` says that the same may succeed later.
    """

    exit_code: ClassVar[int] = 1
    transient: ClassVar[bool] = False


class HpcError(ExpectedError):
    """Base of all errors of the execution layer."""


class RunDirectoryError(HpcError):
    """The run directory cannot be used as it is."""

    exit_code = 5


class RunLocked(RunDirectoryError):
    """Another controller works on this run."""

    transient = True


class LeaseLost(RunDirectoryError):
    """A newer controller has taken this run over; this one must stop without writing."""


class RunVersionError(RunDirectoryError):
    """The run was written by an incompatible version of the software."""


class JournalMismatch(RunDirectoryError):
    """A recorded effect was asked something else than the program asks now."""


class StorageFull(RunDirectoryError):
    """A write failed for want of space or quota; everything recorded before it stands."""

    transient = True


class StorageUnavailable(RunDirectoryError):
    """A write failed in a way that may pass; everything recorded before it stands."""

    transient = True


class ReplayMiss(HpcError):
    """A replay needed an effect that was never recorded."""

    exit_code = 5


class WorkCancelled(HpcError):
    """Somebody cancelled the jobs that the work was given to; it is not given to others."""

    exit_code = 130


class InfrastructureError(HpcError):
    """The machine failed, not the candidate: to be retried, never charged to a candidate."""

    exit_code = 7


# What network and parallel file systems answer while servers are away or restarted, or a mount is being mended.
PASSING = frozenset(
    {
        *(errno.EIO, errno.EROFS, errno.ESTALE, errno.EPERM, errno.EACCES, errno.EAGAIN, errno.EBUSY),
        *(errno.ENOLCK, errno.EREMOTEIO, errno.ENXIO, errno.ENODEV, errno.ESHUTDOWN, errno.ENOTCONN),
        *(errno.ETIMEDOUT, errno.ECONNREFUSED, errno.ECONNRESET, errno.ECONNABORTED, errno.EHOSTDOWN),
        *(errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH),
    }
)


def is_of_storage(error: BaseException) -> bool:
    """Whether it tells of storage that cannot be used just now, be it in the words of who wanted to read a file."""
    if isinstance(error, (OSError, StorageFull, StorageUnavailable)):
        return True
    told = error.__cause__ or error.__context__
    own = isinstance(error, ExpectedError) and not isinstance(error, (LeaseLost, InfrastructureError))
    return (
        own and isinstance(told, OSError) and told.errno in PASSING and not isinstance(told, ConnectionError)
    )


def is_transient(error: BaseException) -> bool:
    """Whether the same may succeed later."""
    return is_of_storage(error) or (isinstance(error, ExpectedError) and error.transient)
