"""The bridge between a Spark task and ``holdfast.runtime``: Arrow batches of the exchange in, Arrow batches of the
exchange out.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import Any

import msgspec
import pyarrow as pa
from pyspark import Broadcast, TaskContext

from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.envelope import COORDINATOR_EDGE, EXCHANGE_SCHEMA, FAILURE_EDGE, Envelope, unpack_header
from holdfast.runtime.epoch import RestoredJob, senders_of
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.local_files import prepare_attempt
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.program import load_program
from holdfast.runtime.task import TaskRun
from holdfast.spark.epoch_property import announced_epoch
from holdfast.spark.failures import FailedBefore, sending_failures
from holdfast.spark.garbage import rare_collections
from holdfast.spark.worker_log import log_in_worker

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: Rows handed to Spark at once: a few large ones.
_BATCH_BYTES = 8 << 20

_plans: dict[AttemptIdentity, JobPlan] = {}


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
        yield from _sent(task, job, level, _envelopes(batches, slot, values[slot]), values)

    return run_level


def _sent(
    task: TaskRun, job: JobPlan, level: int, incoming: Iterator[Envelope], values: list[int]
) -> Iterator[pa.RecordBatch]:
    # Of a failure the first envelope tells: the task need not take up its state.
    first = list(islice(incoming, 1))
    senders = senders_of(level, job.levels, job.slots, task.spec.partitions)
    outgoing = task.run(chain(first, incoming), senders)
    last = level == job.levels[-1]
    yield from envelope_batches((e for e in outgoing if not last or e.edge == COORDINATOR_EDGE), values)


def plan_of(plan: Broadcast[bytes], identity: AttemptIdentity) -> JobPlan:
    """The job's plan, unpickled once per worker process and attempt."""
    known = _plans.get(identity)
    if known is None:
        log_in_worker()
        known = load_program(plan.value, "The program")
        assert isinstance(known, JobPlan)
        # A worker serves one attempt at a time: older plans are of attempts that are over.
        _plans.clear()
        forget_live_tasks(identity[0], before_attempt=identity[1])
        # First: a directory that was refused once is refused to the next task of this process too.
        prepare_attempt(known, identity[1])
        _plans[identity] = known
    return known


def _restored(restored: Broadcast[bytes] | None) -> RestoredJob | None:
    return None if restored is None else msgspec.msgpack.decode(restored.value, type=RestoredJob)


def _envelopes(batches: Iterator[pa.RecordBatch], slot: int, value: int) -> Iterator[Envelope]:
    for batch in batches:
        if "payload" not in batch.schema.names:
            continue  # the anchor row itself, which the first level runs on
        columns: list[list[Any]] = [
            batch.column(name).to_pylist() for name in ("slot", "edge", "channel", "number", "sender", "sequence")
        ]
        payloads = batch.column("payload")
        for index, (found, edge, channel, number, sender, sequence) in enumerate(zip(*columns, strict=True)):
            assert found == value, f"partition {slot} got a row for slot value {found}, expected {value}"
            if edge == FAILURE_EDGE:
                raise FailedBefore(unpack_header(payloads[index].as_buffer())[0].failure)
            yield Envelope(slot, edge, channel, number, sender, sequence, payloads[index].as_buffer())


def envelope_batches(envelopes: Iterator[Envelope], values: list[int]) -> Iterator[pa.RecordBatch]:
    waiting: list[Envelope] = []
    size = 0
    for envelope in envelopes:
        waiting.append(envelope)
        size += len(memoryview(envelope.payload))
        if size >= _BATCH_BYTES:
            yield _batch(waiting, values)
            waiting, size = [], 0
    if waiting:
        yield _batch(waiting, values)


def _batch(envelopes: list[Envelope], values: list[int]) -> pa.RecordBatch:
    arrays = [
        pa.array([values[e.slot] for e in envelopes], pa.int32()),
        pa.array([e.edge for e in envelopes], pa.int32()),
        pa.array([e.channel for e in envelopes], pa.int32()),
        pa.array([e.number for e in envelopes], pa.int32()),
        pa.array([e.sender for e in envelopes], pa.int32()),
        pa.array([e.sequence for e in envelopes], pa.int32()),
        # Not of memoryviews: Arrow never lets go of what they show.
        pa.array([e.payload if isinstance(e.payload, bytes) else bytes(e.payload) for e in envelopes], pa.binary()),
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=EXCHANGE_SCHEMA)
