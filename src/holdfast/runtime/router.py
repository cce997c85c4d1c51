"""The way out of a task: rows become envelopes, buffered per target and sent through the exchange."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow as pa

from holdfast.errors import ProgramError, RowTypeError
from holdfast.runtime.batch import Batch, ReceivedKeys
from holdfast.runtime.envelope import (
    CONTROL_EDGE,
    COORDINATOR_EDGE,
    Barrier,
    ChannelStatus,
    Envelope,
    Header,
    pack,
    with_barrier,
)
from holdfast.runtime.event_times import Times
from holdfast.runtime.partitioners import (
    KEY_COLUMN,
    KEY_COLUMN_TYPES,
    Hashes,
    KeyColumn,
    KeyGroupHash,
    KeyReader,
    Targets,
)
from holdfast.runtime.plan import EdgeSpec, TaskOptions
from holdfast.runtime.row_order import GROUPED_ROWS, by_target, by_target_and_key
from holdfast.types.arrow import ROW_KINDS, exchange_writer, kinds_of, row_reader, schema_of

if TYPE_CHECKING:
    from holdfast.runtime.context import RuntimeContext

TIMESTAMP_COLUMN = "__timestamp"
WATERMARK_COLUMN = "__watermark"


class Outbox:
    """Numbers the envelopes of one task's links, and holds each link's last one back for its barrier. A link through
    which nothing is sent has no barrier.
    """

    def __init__(self, sender: int) -> None:
        self._sender = sender
        #: By receiver.
        self._sent: dict[int, int] = {}
        self._held: dict[int, Envelope] = {}
        self._ready: list[Envelope] = []

    def send(self, slot: int, edge: int, channel: int, number: int, payload: bytes | pa.Buffer) -> None:
        sequence = self._sent.get(slot, 0)
        self._sent[slot] = sequence + 1
        held = self._held.get(slot)
        if held is not None:
            self._ready.append(held)
        self._held[slot] = Envelope(slot, edge, channel, number, self._sender, sequence, payload)

    def pass_on(self, envelope: Envelope) -> None:
        """Hand an envelope of an edge that skips this level to the next one, as it is."""
        self.send(envelope.slot, envelope.edge, envelope.channel, envelope.number, envelope.payload)

    def to_coordinator(self, slot: int, payload: bytes) -> None:
        self.send(slot, COORDINATOR_EDGE, self._sender, 0, payload)

    def sent_with_acknowledgement(self, slot: int) -> dict[int, int]:
        """How many envelopes went to each receiver, once the acknowledgement has gone to ``slot``."""
        return {**self._sent, slot: self._sent.get(slot, 0) + 1}

    def take(self) -> list[Envelope]:
        ready, self._ready = self._ready, []
        return ready

    def take_all(self) -> list[Envelope]:
        """Take the last envelope of each link too, for a driver that cannot wait: its barrier then travels alone."""
        self._ready += self._held.values()
        self._held.clear()
        return self.take()

    def close(self, barrier: Barrier) -> list[Envelope]:
        """Everything that is left, each link's last envelope carrying its barrier."""
        for slot in self._sent.keys() - self._held.keys():
            self.send(slot, CONTROL_EDGE, self._sender, 0, pack(Header()))
        for slot, held in self._held.items():
            counted = msgspec.structs.replace(barrier, count=self._sent[slot])
            held.payload = with_barrier(bytes(memoryview(held.payload)), counted)
        return self.take_all()


class Router:
    """One edge as seen by one sending subtask."""

    def __init__(self, edge: EdgeSpec, subtask: int, channel: int, where: str, options: TaskOptions) -> None:
        self._edge = edge
        self._channel = channel
        self._options = options
        self._partitioner = edge.partitioner.bind(subtask, edge.target_parallelism, where)
        self._write_rows = exchange_writer(edge.type_info)
        self._columns = schema_of(edge.type_info)
        self._where = where
        #: What all targets know.
        self._sent_status: ChannelStatus | None = None
        self._reset()

    def _reset(self) -> None:
        targets = self._edge.target_parallelism
        self._buffers: list[list[pa.RecordBatch]] = [[] for _ in range(targets)]
        self._buffered = [0] * targets
        self._number = [0] * targets
        self._key_form = ""
        self._with_kinds = False

    def open(self, runtime_context: RuntimeContext) -> None:
        """Before the first row, in every process that takes the task up."""
        self._partitioner.open(runtime_context)

    def close(self) -> None:
        self._partitioner.close()

    def begin_epoch(self, outbox: Outbox, attempt: int = 0, epoch: int = 0) -> None:
        self._outbox = outbox
        self._partitioner.begin_epoch(attempt, epoch, self._edge.edge_id)
        self._reset()

    def collect(self, batch: Batch) -> None:
        """Split a batch by target and send what has become large enough."""
        if not len(batch):
            return
        columns = batch.arrow if batch.arrow is not None else self._written(batch.values)
        route = self._partitioner.route(batch, columns)
        wire = self._wire(columns, batch, route.keys)
        with_kinds = kinds_of(columns) is not None
        if (route.keys.form, with_kinds) != (self._key_form, self._with_kinds):
            self.flush()
            self._key_form, self._with_kinds = route.keys.form, with_kinds
        if route.single is not None:
            self._buffer(route.single, wire)
        elif route.targets is None:
            for target in range(self._edge.target_parallelism):
                self._buffer(target, wire)
        else:
            self._buffer_split(route.targets, route.hashes, wire)

    def _written(self, rows: list[Any]) -> pa.RecordBatch:
        try:
            return self._write_rows(rows)
        except RowTypeError as error:
            raise error.at(operator=self._where) from error.__cause__

    def close_epoch(self, status: ChannelStatus) -> None:
        """Send the rest; the status rides in each target's last envelope, or alone where it changed."""
        changed = self._sent_status != status
        for target, waiting in enumerate(self._buffers):
            if waiting:
                self._flush(target, status)
            elif changed:
                self._send(target, Header(status=status), b"")
        self._sent_status = status

    def dump(self) -> Any:
        """What the next execution must remember: which status the targets know."""
        return self._sent_status

    def load(self, dumped: Any) -> None:
        self._sent_status = dumped

    def _wire(self, columns: pa.RecordBatch, batch: Batch, keys: KeyColumn) -> pa.RecordBatch:
        arrays, names = list(columns.columns), list(columns.schema.names)
        if self._edge.event_time:
            assert batch.times is not None and batch.marks is not None
            arrays += [batch.times.column(), batch.marks.column()]
            names += [TIMESTAMP_COLUMN, WATERMARK_COLUMN]
        if keys.column is not None:
            arrays.append(keys.column)
            names.append(KEY_COLUMN)
        if len(arrays) == columns.num_columns:
            return columns
        return pa.RecordBatch.from_arrays(arrays, names=names)

    def _buffer_split(self, targets: Targets, hashes: Hashes | None, wire: pa.RecordBatch) -> None:
        parallelism = self._edge.target_parallelism
        # Event time goes on from row to row: rows that have it stay in their order.
        grouped = hashes is not None and not self._edge.event_time and len(targets) >= GROUPED_ROWS
        if parallelism == 1 and not grouped:
            self._buffer(0, wire)
            return
        # Either order keeps the rows of one key in the order in which they came.
        if grouped and hashes is not None:
            order = by_target_and_key(targets, hashes, parallelism)
        else:
            order = by_target(targets)
        counts = np.bincount(targets, minlength=parallelism)
        sorted_rows = wire.take(pa.array(order))
        start = 0
        for target, count in enumerate(counts.tolist()):
            if count:
                self._buffer(target, sorted_rows.slice(start, count))
                start += count

    def _buffer(self, target: int, rows: pa.RecordBatch) -> None:
        self._buffers[target].append(rows)
        self._buffered[target] += rows.nbytes
        if self._buffered[target] >= self._options.envelope_bytes:
            self._flush(target, None)

    def flush(self) -> None:
        """Send all rows that wait, without a status."""
        for target, buffered in enumerate(self._buffers):
            if buffered:
                self._flush(target, None)

    def _flush(self, target: int, status: ChannelStatus | None) -> None:
        batches, self._buffers[target], self._buffered[target] = self._buffers[target], [], 0
        rows = pa.concat_batches(batches) if len(batches) > 1 else batches[0]
        self._send_rows(target, rows, status)

    def _send_rows(self, target: int, rows: pa.RecordBatch, status: ChannelStatus | None) -> None:
        body = rows.serialize()
        limit = self._options.max_row_bytes
        if body.size > max(2 * self._options.envelope_bytes, limit if rows.num_rows == 1 else 0):
            if rows.num_rows == 1:
                raise ProgramError(
                    f"{self._where}: one row takes {body.size} bytes; the limit is {limit}. "
                    "Make the row smaller or raise 'holdfast.row.max-bytes'."
                )
            half = rows.num_rows // 2
            self._send_rows(target, rows.slice(0, half), None)
            self._send_rows(target, rows.slice(half), status)
            return
        header = Header(status=status, key_form=self._key_form, rows=rows.num_rows, row_kinds=self._with_kinds)
        self._send(target, header, body)

    def _send(self, target: int, header: Header, body: bytes | pa.Buffer) -> None:
        self._outbox.send(target, self._edge.edge_id, self._channel, self._number[target], pack(header, body))
        self._number[target] += 1


class EdgeReader:
    """One edge as seen by one receiving subtask: envelope bodies become batches."""

    def __init__(self, edge: EdgeSpec) -> None:
        self._edge = edge
        self._read_rows = row_reader(edge.type_info)
        self._keys = KeyReader(edge.partitioner) if isinstance(edge.partitioner, KeyGroupHash) else None
        self._schemas: dict[tuple[str, bool], pa.Schema] = {}
        #: By the form of rows: what makes Python keys, and a column, of received ones.
        self._reads_keys: dict[tuple[str, bool], tuple[Callable[..., Any], Callable[..., Any]]] = {}

    def read(self, header: Header, body: memoryview) -> Batch:
        form = header.key_form, header.row_kinds
        wire = pa.ipc.read_record_batch(pa.py_buffer(body), self._schema(*form))
        timestamps = watermarks = None
        keys: ReceivedKeys | None = None
        if self._edge.event_time:
            timestamps = Times.of_column(wire.column(TIMESTAMP_COLUMN))
            watermarks = Times.of_column(wire.column(WATERMARK_COLUMN))
        if self._keys is not None:
            if form not in self._reads_keys:
                key_form = header.key_form
                self._reads_keys[form] = partial(self._keys.read, key_form), partial(self._keys.column, key_form)
            keys = ReceivedKeys(wire, *self._reads_keys[form])
        columns = wire.select(self._columns(header.row_kinds).names)
        return Batch(None, timestamps, watermarks, keys, columns, self._read_rows)

    def _columns(self, row_kinds: bool) -> pa.Schema:
        """The columns of the rows, without what travels beside them."""
        schema = schema_of(self._edge.type_info)
        return schema.append(pa.field(ROW_KINDS, pa.int8())) if row_kinds else schema

    def _schema(self, key_form: str, row_kinds: bool) -> pa.Schema:
        schema = self._schemas.get((key_form, row_kinds))
        if schema is None:
            schema = self._columns(row_kinds)
            if self._edge.event_time:
                schema = schema.append(pa.field(TIMESTAMP_COLUMN, pa.int64())).append(
                    pa.field(WATERMARK_COLUMN, pa.int64())
                )
            if key_form in KEY_COLUMN_TYPES:
                schema = schema.append(pa.field(KEY_COLUMN, KEY_COLUMN_TYPES[key_form]))
            self._schemas[key_form, row_kinds] = schema
        return schema
