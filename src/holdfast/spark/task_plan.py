"""The job's plan in a Python worker, which serves one attempt after the other."""

from __future__ import annotations

from pyspark import Broadcast, SparkFiles

from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.local_files import prepare_attempt
from holdfast.runtime.packed_plan import load_plan
from holdfast.runtime.plan import JobPlan
from holdfast.spark.worker_log import log_in_worker

_plans: dict[AttemptIdentity, JobPlan] = {}


def plan_of(plan: Broadcast[bytes], identity: AttemptIdentity) -> JobPlan:
    """The job's plan, unpickled once per worker process and attempt."""
    known = _plans.get(identity)
    if known is None:
        log_in_worker()
        known = load_plan(plan.value, SparkFiles.getRootDirectory())
        # A worker serves one attempt at a time: older plans are of attempts that are over.
        _plans.clear()
        forget_live_tasks(identity[0], before_attempt=identity[1])
        # First: a directory that was refused once is refused to the next task of this process too.
        prepare_attempt(known, identity[1])
        _plans[identity] = known
    return known
