"""Which Python worker the demo kills."""

from __future__ import annotations

import time

from holdfast.testing.chaos.processes import Process, python_workers

#: A worker that rested and then is seen computing so often in a row has begun a task.
_LOOKS = 2
_LOOK_SECONDS = 0.01
_LONGEST_SECONDS = 0.5


def kill_busy_worker(root: int) -> int | None:
    """SIGKILL a worker below ``root`` that has just begun to compute; its id, or None when none does for a while.

    One that has computed all along may be done with its task and collecting garbage, which nobody would miss.
    """
    computing: dict[Process, int | None] = dict.fromkeys(python_workers(root))
    deadline = time.monotonic() + _LONGEST_SECONDS
    while time.monotonic() < deadline:
        for worker, looks in computing.items():
            if not worker.computes:
                computing[worker] = 0
            elif looks is not None:
                computing[worker] = looks + 1
                if looks + 1 == _LOOKS:
                    worker.kill()
                    return worker.pid
        time.sleep(_LOOK_SECONDS)
    return None
