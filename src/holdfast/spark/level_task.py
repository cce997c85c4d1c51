"""The bridge between a Spark task and ``holdfast.runtime``: Arrow batches of the exchange in, Arrow batches of the
exchange out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import chain, islice

import msgspec
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.envelope import COORDINATOR_EDGE, Envelope
from holdfast.runtime.epoch import RestoredJob, senders_of
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import TaskRun
from holdfast.spark.envelope_rows import ArrowFunction, envelope_batches, envelopes_of
from holdfast.spark.epoch_property import announced_epoch
from holdfast.spark.failures import sending_failures
from holdfast.spark.garbage import rare_collections
from holdfast.spark.query_task import set_aside
from holdfast.spark.task_plan import plan_of


def level_function(
    plan: Broadcast[bytes],
    restored: Broadcast[bytes] | None,
    identity: AttemptIdentity,
    level: int,
    values: list[int],
) -> ArrowFunction:
    """The function that Spark runs on every partition of a level, in every epoch of an attempt."""

    def run_level(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        with rare_collections():
            yield from sending_failures(sent(context, context.partitionId(), batches), values)

    def sent(context: TaskContext, slot: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        job, spec = plan_of(plan, identity), announced_epoch(context)
        if slot >= job.slots:
            # A process that leaves some of its input unread is not used again.
            deque(batches, maxlen=0)
            return
        task = TaskRun(job, level, slot, spec, lambda: _restored(restored))
        queried: Iterator[pa.RecordBatch] = iter(())
        if job.queried_at(level) is None:
            incoming = envelopes_of(batches, slot, values[slot])
        else:
            queried, incoming = filter(len, batches), set_aside(context, job, spec, identity)
        with job.files.entered():
            yield from _sent(task, job, level, queried, incoming, values)

    return run_level


def _sent(
    task: TaskRun,
    job: JobPlan,
    level: int,
    queried: Iterator[pa.RecordBatch],
    incoming: Iterator[Envelope],
    values: list[int],
) -> Iterator[pa.RecordBatch]:
    # Of a failure the first envelope tells, and no rows come before it: the task need not take up its state.
    first_rows = list(islice(queried, 1))
    first = [] if first_rows else list(islice(incoming, 1))
    senders = senders_of(level, job.levels, job.slots, task.spec.partitions)
    outgoing = task.run(chain(first, incoming), senders, chain(first_rows, queried))
    last = level == job.levels[-1]
    yield from envelope_batches((e for e in outgoing if not last or e.edge == COORDINATOR_EDGE), values)


def _restored(restored: Broadcast[bytes] | None) -> RestoredJob | None:
    return None if restored is None else msgspec.msgpack.decode(restored.value, type=RestoredJob)
