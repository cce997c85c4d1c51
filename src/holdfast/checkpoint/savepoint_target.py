"""The place of a savepoint is made before an epoch carries it, beside the job: whatever somebody gave as a directory,
and however long a storage takes to answer, epochs go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.triggers import SnapshotTrigger
from holdfast.errors import CheckpointError


def prepare_target(
    trigger: SnapshotTrigger, directory: str, job_id: str, seconds: float, ready: Callable[[SnapshotTrigger], None]
) -> None:
    """Make the folder in a thread and hand the trigger to ``ready``, there. It fails when that cannot be, or takes
    longer than ``seconds``; a folder that appears after that is removed again.
    """

    def expire() -> None:
        late = f"After {seconds:g} s the directory {directory} has not answered."
        trigger.fail(CheckpointFailureReason.CHECKPOINT_EXPIRED, late)

    def prepare() -> None:
        try:
            location = SavepointLocation.create(directory, job_id)
        except CheckpointError as error:
            trigger.fail(CheckpointFailureReason.IO_EXCEPTION, str(error))
            return
        finally:
            expiry.cancel()
        trigger.location = location
        if trigger.outcome.done():
            trigger.refuse(CheckpointFailureReason.CHECKPOINT_EXPIRED)
        else:
            ready(trigger)

    expiry = threading.Timer(seconds, expire)
    expiry.daemon = True
    expiry.start()
    threading.Thread(target=prepare, name="holdfast-savepoint-target", daemon=True).start()
