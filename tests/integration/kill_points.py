"""Where processes of a job may die. ``make test`` kills one at each point, ``make chaos`` as many as time allows."""

from __future__ import annotations

import random

from tests.kit.faults import FaultPlan

#: A Python worker, in the order in which a task comes by.
WORKER_POINTS = [
    "task.start",
    "task.opened",
    "task.outputs-sent",
    "task.uploading",
    "task.before-commit",
    "task.after-commit",
]
#: A driver.
DRIVER_POINTS = [
    "driver.epoch-collected",
    "checkpoint.before-metadata",
    "checkpoint.after-metadata",
    "driver.commit-begun",
    "sink.before-commit",
    "file-sink-moved",
]


def kill_workers(faults: FaultPlan, chosen: random.Random) -> None:
    """One at each point, at a hit that is drawn: all are reached by three jobs of some ten epochs. Another one dies
    while it takes up the state of one that died before.
    """
    for point in WORKER_POINTS:
        # Uploads happen with a checkpoint only, everything else in every task of every epoch.
        faults.add(point, "kill", hit=chosen.randint(3, 20 if point == "task.uploading" else 120))
    faults.add("task.restoring", "kill", hit=chosen.randint(2, 8))
