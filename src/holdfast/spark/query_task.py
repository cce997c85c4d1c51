"""In front of a query, in the task of its level: envelopes are taken apart. Their rows go through the query, in the JVM
of the same task; whatever else there is goes past it, in a file, to the level's function behind the query.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark import Broadcast, TaskContext

from holdfast.errors import HoldfastError
from holdfast.failpoints import failpoint
from holdfast.job.engine import AttemptIdentity
from holdfast.runtime.envelope import FAILURE_EDGE, Envelope, Header, pack, unpack_header
from holdfast.runtime.epoch import EpochSpec
from holdfast.runtime.local_files import attempt_directory
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.router import EdgeReader
from holdfast.runtime.set_aside import SetAside, read_set_aside
from holdfast.spark.envelope_rows import ArrowFunction, envelopes_of
from holdfast.spark.epoch_property import announced_epoch
from holdfast.spark.failures import FailedBefore, TaskFailure
from holdfast.spark.task_plan import plan_of
from holdfast.spark.view_columns import ViewColumns


def rows_function(plan: Broadcast[bytes], identity: AttemptIdentity, level: int, values: list[int]) -> ArrowFunction:
    """Gives the rows of a level's view, in every epoch of an attempt."""

    def run_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        slot = context.partitionId()
        job, spec = plan_of(plan, identity), announced_epoch(context)
        if slot < job.slots:
            incoming = envelopes_of(batches, slot, values[slot])
            with SetAside(_path(context, job, spec, identity), job.options.secret) as aside:
                yield from rows_in_front(incoming, job, level, slot, aside)
                failpoint("query.rows-given", epoch=spec.epoch, level=level, slot=slot)
        # Behind a failure, or without a slot: a process that leaves some of its input unread is not used again.
        deque(batches, maxlen=0)

    return run_rows


def rows_in_front(
    incoming: Iterator[Envelope], job: JobPlan, level: int, slot: int, aside: SetAside
) -> Iterator[pa.RecordBatch]:
    """The rows of the level's view in a task. Its envelopes, without them, are set aside; so is a failure, for the
    level's function to tell.
    """
    chain = job.queried_at(level)
    assert chain is not None and chain.query is not None
    columns = ViewColumns(chain.query.view)
    readers = {edge.edge_id: EdgeReader(edge) for edge in job.edges if edge.edge_id in chain.inputs}
    try:
        for envelope in incoming:
            reader = readers.get(envelope.edge)
            if reader is not None:
                header, body = unpack_header(envelope.payload)
                if header.rows:
                    yield columns.of(reader.read(header, body))
                envelope.payload = pack(header)
            aside.add(envelope)
        return
    except FailedBefore as failed:
        failure = str(failed)
    except HoldfastError as error:
        failure = TaskFailure.of(error).encode()
    aside.add(Envelope(slot, FAILURE_EDGE, 0, 0, 0, 0, pack(Header(failure=failure))))


def set_aside(context: TaskContext, job: JobPlan, spec: EpochSpec, identity: AttemptIdentity) -> Iterator[Envelope]:
    """In the level's function: what went past the query. Not to be asked for before the query's last row is there."""
    yield from past_query(_path(context, job, spec, identity), job.options.secret)


def past_query(path: Path, secret: bytes) -> Iterator[Envelope]:
    """The envelopes that are set aside in a file. FailedBefore where a failure is among them."""
    for envelope in read_set_aside(path, secret):
        if envelope.edge == FAILURE_EDGE:
            raise FailedBefore(unpack_header(envelope.payload)[0].failure)
        yield envelope


def _path(context: TaskContext, job: JobPlan, spec: EpochSpec, identity: AttemptIdentity) -> Path:
    """One file for each execution of a task: no number of an attempt of a task comes twice in an application."""
    return attempt_directory(job, spec.attempt) / f"past-query-{context.taskAttemptId()}-{identity[2]}"
