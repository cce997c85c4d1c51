"""Why a checkpoint did not complete."""

from __future__ import annotations

from enum import Enum


class CheckpointFailureReason(Enum):
    """``text`` is for people; ``counts`` says whether the failure counts towards the tolerable ones."""

    CHECKPOINT_DECLINED = ("A subtask could not take its snapshot.", True)
    CHECKPOINT_ASYNC_EXCEPTION = ("A subtask could not write its snapshot.", True)
    CHECKPOINT_EXPIRED = ("Checkpoint expired before completing.", True)
    IO_EXCEPTION = ("The checkpoint storage could not be used.", True)
    FINALIZE_CHECKPOINT_FAILURE = ("Failure to finalize checkpoint.", True)
    CHECKPOINT_SUBSUMED = ("Checkpoint has been subsumed by a newer one.", False)
    CHECKPOINT_COORDINATOR_SHUTDOWN = ("The checkpoint coordinator was shut down.", False)
    CHECKPOINT_COORDINATOR_SUSPEND = ("The job is being stopped with a savepoint.", False)
    NOT_ALL_REQUIRED_TASKS_RUNNING = ("The job is not running: it is starting, restarting, or has ended.", False)
    TOO_MANY_CHECKPOINT_REQUESTS = ("Too many requests for snapshots are waiting already.", False)
    LEADERSHIP_LOST = ("This driver does not lead the job any more.", False)
    EPOCH_FAILED = ("An epoch of the attempt that took the checkpoint failed.", False)

    def __init__(self, text: str, counts: bool) -> None:
        self.text = text
        self.counts = counts
