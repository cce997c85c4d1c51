"""Which task an epoch failed with, where Spark's report names only its stage: a worker process that was killed, or that
ended itself, says nothing of its own.
"""

from __future__ import annotations

import re

from pyspark import SparkContext

from holdfast.errors import EpochError, HoldfastError
from holdfast.runtime.plan import JobPlan
from holdfast.spark.failures import failure_of

#: The index of a task within its stage is its partition: the slot.
_LOST_TASK = re.compile(r"Lost task (\d+)\.\d+ in stage (\d+)\.\d+")
#: Spark jobs, newest first, among which the one of the epoch is looked for.
_RECENT_JOBS = 20


def failure_with_task(error: Exception, plan: JobPlan, context: SparkContext) -> HoldfastError:
    """The error that an epoch is reported with; one that is not ours names the slot and the operators of the task."""
    failure = failure_of(error)
    lost = _LOST_TASK.search(str(error))
    if type(failure) is EpochError and not failure.place and lost is not None:
        slot, stage = int(lost[1]), int(lost[2])
        level = _level_of(stage, plan, context)
        if level is not None:
            failure.at(task=plan.describe_task(level, slot))
    return failure


def _level_of(stage: int, plan: JobPlan, context: SparkContext) -> int | None:
    """Levels are stages one behind the other, of which the last gives the result; None for a stage that is none."""
    behind = next((sum(other > stage for other in stages) for stages in _jobs(context) if stage in stages), None)
    level = None if behind is None else plan.levels[-1] - behind
    return level if level in plan.levels else None


def _jobs(context: SparkContext) -> list[list[int]]:
    """The stages of the latest jobs of this thread's group."""
    tracker = context.statusTracker()
    group: str | None = context.getLocalProperty("spark.jobGroup.id")
    # Without a group it gives the jobs that have none; its declaration does not know that.
    numbers = sorted(tracker.getJobIdsForGroup(group), reverse=True)[:_RECENT_JOBS]
    return [list(info.stageIds) for info in map(tracker.getJobInfo, numbers) if info is not None]
