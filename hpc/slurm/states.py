"""The states of a Slurm job, and what each means for the work that the job was to do."""

from __future__ import annotations

from enum import StrEnum


class FailureClass(StrEnum):
    """Whose fault an ended job is, which decides what is done about it."""

    NODE = "node"
    """The machine failed: submit again, without that node if it happens twice."""
    PREEMPTED = "preempted"
    """Another job took the place: submit again."""
    WALLTIME = "walltime"
    """The job's time was up: submit what is left."""
    MEMORY = "memory"
    """The job used more memory than it had asked for: once more, alone, with more."""
    CANCELLED = "cancelled"
    """Somebody ended this job: its work is given to others, as campaigns are ended by a request of their own."""
    PROGRAM = "program"
    """The job's own program ended with an error."""


class JobState(StrEnum):
    """A state as Slurm names it; UNKNOWN where it names none that is known here."""

    PENDING = "PENDING"
    CONFIGURING = "CONFIGURING"
    POWER_UP_NODE = "POWER_UP_NODE"
    RUNNING = "RUNNING"
    SUSPENDED = "SUSPENDED"
    STOPPED = "STOPPED"
    SIGNALING = "SIGNALING"
    RESIZING = "RESIZING"
    EXPEDITING = "EXPEDITING"
    STAGE_OUT = "STAGE_OUT"
    COMPLETING = "COMPLETING"
    UPDATE_DB = "UPDATE_DB"
    REQUEUED = "REQUEUED"
    REQUEUE_FED = "REQUEUE_FED"
    REQUEUE_HOLD = "REQUEUE_HOLD"
    RESV_DEL_HOLD = "RESV_DEL_HOLD"
    SPECIAL_EXIT = "SPECIAL_EXIT"
    COMPLETED = "COMPLETED"
    BOOT_FAIL = "BOOT_FAIL"
    NODE_FAIL = "NODE_FAIL"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    RECONFIG_FAIL = "RECONFIG_FAIL"
    PREEMPTED = "PREEMPTED"
    TIMEOUT = "TIMEOUT"
    DEADLINE = "DEADLINE"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    CANCELLED = "CANCELLED"
    REVOKED = "REVOKED"
    FAILED = "FAILED"
    UNKNOWN = "UNKNOWN"

    @classmethod
    def parse(cls, text: str) -> JobState:
        """Return the state that a text such as `CANCELLED by 1001` or `COMPLETED+` names."""
        word = text.split(maxsplit=1)[0].rstrip("+") if text.strip() else ""
        return cls(word) if word in cls.__members__ else cls.UNKNOWN

    @property
    def ended(self) -> bool:
        """Whether the job is over for good, as far as the state tells."""
        return self is JobState.COMPLETED or self.failure is not None

    @property
    def waits(self) -> bool:
        """Whether the job has not started, or is to start again."""
        return self in _WAITING

    @property
    def failure(self) -> FailureClass | None:
        """Why the job is over without having completed; None while it is not, and for UNKNOWN."""
        return _FAILURES.get(self)


_WAITING = {
    JobState.PENDING,
    JobState.REQUEUED,
    JobState.REQUEUE_FED,
    JobState.REQUEUE_HOLD,
    JobState.RESV_DEL_HOLD,
    JobState.SPECIAL_EXIT,
}
_FAILURES = {
    JobState.BOOT_FAIL: FailureClass.NODE,
    JobState.NODE_FAIL: FailureClass.NODE,
    JobState.LAUNCH_FAILED: FailureClass.NODE,
    JobState.RECONFIG_FAIL: FailureClass.NODE,
    JobState.PREEMPTED: FailureClass.PREEMPTED,
    JobState.TIMEOUT: FailureClass.WALLTIME,
    JobState.DEADLINE: FailureClass.WALLTIME,
    JobState.OUT_OF_MEMORY: FailureClass.MEMORY,
    JobState.CANCELLED: FailureClass.CANCELLED,
    JobState.REVOKED: FailureClass.CANCELLED,
    JobState.FAILED: FailureClass.PROGRAM,
}
