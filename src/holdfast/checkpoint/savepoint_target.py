"""The place of a savepoint is made before an epoch carries it, beside the job: whatever somebody gave as a directory,
and however long a storage takes to answer, epochs go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger


def prepare_target(
    trigger: SnapshotTrigger, directory: str, job_id: str, seconds: float, ready: Callable[[SnapshotTrigger], None]
) -> None:
    """Make the folder in a thread and hand the trigger to ``ready``, there. It fails when that cannot be, or takes
    longer than ``seconds``; a folder that appears after that is removed again.
    """

    # Whoever has it decides: a trigger that was said to have failed must not reach the job.
    decision = threading.Lock()

    def expire() -> None:
        if decision.acquire(blocking=False):
            late = f"After {seconds:g} s the directory {directory} has not answered."
            trigger.fail(CheckpointFailureReason.CHECKPOINT_EXPIRED, late)

    def prepare() -> None:
        try:
            trigger.location = SavepointLocation.create(directory, job_id)
        except Exception as error:
            trigger.fail(CheckpointFailureReason.IO_EXCEPTION, str(error) or type(error).__name__)
            return
        finally:
            expiry.cancel()
        if decision.acquire(blocking=False) and not trigger.outcome.done():
            ready(trigger)
        else:
            trigger.refuse(CheckpointFailureReason.CHECKPOINT_EXPIRED)

    expiry = threading.Timer(seconds, expire)
    expiry.daemon = True
    expiry.start()
    threading.Thread(target=prepare, name="holdfast-savepoint-target", daemon=True).start()
