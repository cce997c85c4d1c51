"""All tasks of an epoch in this process, level after level, through the same steps as on Spark."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence
from copy import copy

from holdfast.runtime.envelope import COORDINATOR_EDGE, Envelope
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob, senders_of
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import TaskRun, read_acknowledgement


def run_tasks(
    plan: JobPlan,
    spec: EpochSpec,
    restored: RestoredJob | None,
    clock: Callable[[], int],
    extra: Sequence[Envelope] = (),
    repeated: Collection[tuple[int, int]] = (),
) -> list[Acknowledgement]:
    """``extra`` envelopes enter level 1 beside those of level 0.

    Envelopes reach the next level in the order in which Spark sorts them, in whatever order they were sent. Tasks
    (level, slot) that are ``repeated`` run twice, and nobody sees what their first execution sent.
    """
    arriving: list[Envelope] = []
    for level in plan.levels:
        leaving: list[Envelope] = []
        arriving += extra if level == 1 else []
        random.Random(level).shuffle(arriving)
        senders = senders_of(level, plan.levels, plan.slots, spec.partitions)
        for slot in range(plan.slots):
            mine = sorted((e for e in arriving if e.slot == slot), key=lambda e: (e.edge, e.channel, e.number))
            for _ in range(2 if (level, slot) in repeated else 1):
                task = TaskRun(plan, level, slot, spec, lambda: restored, clock)
                sent = list(task.run((copy(e) for e in mine), senders))
            leaving += sent
        arriving = leaving
    return [read_acknowledgement(bytes(memoryview(e.payload))) for e in arriving if e.edge == COORDINATOR_EDGE]
