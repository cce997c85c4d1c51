"""The states of a job."""

from __future__ import annotations

from enum import Enum


class JobStatus(Enum):
    """Flink's job states, with PyFlink's numbers."""

    CREATED = 0
    RUNNING = 1
    FAILING = 2
    FAILED = 3
    CANCELLING = 4
    CANCELED = 5
    FINISHED = 6
    RESTARTING = 7
    SUSPENDED = 8
    RECONCILING = 9
    INITIALIZING = 10

    @property
    def is_globally_terminal(self) -> bool:
        """True when the job is over for good."""
        return self in (JobStatus.FAILED, JobStatus.CANCELED, JobStatus.FINISHED)

    def is_globally_terminal_state(self) -> bool:
        """``is_globally_terminal``, as PyFlink calls it."""
        return self.is_globally_terminal

    def is_terminal_state(self) -> bool:
        """True when this driver does not go on with the job, which another one may do if it is SUSPENDED."""
        return self.is_globally_terminal or self is JobStatus.SUSPENDED
