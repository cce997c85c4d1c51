"""Envelopes as rows of Spark: what a task of the exchange reads, and what it gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from holdfast.runtime.envelope import EXCHANGE_SCHEMA, FAILURE_EDGE, Envelope, unpack_header
from holdfast.spark.failures import FailedBefore

ArrowFunction = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: Rows handed to Spark at once: a few large ones.
_BATCH_BYTES = 8 << 20


def envelopes_of(batches: Iterator[pa.RecordBatch], slot: int, value: int) -> Iterator[Envelope]:
    """What a task reads. FailedBefore when a task of the level before has failed."""
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
    """What a task gives. ``values`` are the numbers by which Spark finds the partition of a slot."""
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
