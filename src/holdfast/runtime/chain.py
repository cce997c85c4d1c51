"""One subtask of a chain of operators: its inputs, its outputs, and the order of calls along it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from typing import Any

import pyarrow as pa

from holdfast.runtime.aligned_reading import AlignedReading
from holdfast.runtime.batch import Batch
from holdfast.runtime.combining_router import router_of
from holdfast.runtime.context import RuntimeContext
from holdfast.runtime.declared_rows import DeclaredRows
from holdfast.runtime.endpoints import SourceOperator
from holdfast.runtime.envelope import ChannelStatus, Header
from holdfast.runtime.epoch import (
    EpochEnd,
    Notification,
    NotificationKind,
    OperatorProgress,
    RestoredJob,
    SinkHandle,
)
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK, Operator
from holdfast.runtime.output import Output
from holdfast.runtime.plan import ChainSpec, EdgeSpec, TaskOptions
from holdfast.runtime.query import QueryReader
from holdfast.runtime.router import EdgeReader, Outbox, Router
from holdfast.runtime.source import ReadLimit
from holdfast.runtime.watermarks import ChannelWatermarks, TimestampsAndWatermarksOperator
from holdfast.state.handles import OperatorRecord, SnapshotType


class OperatorChain:
    """Operators in order from head to tail. Lives for an attempt; one epoch after the other goes through it."""

    def __init__(self, spec: ChainSpec, subtask: int, edges: Mapping[int, EdgeSpec], options: TaskOptions) -> None:
        self.spec = spec
        self.subtask = subtask
        self.operators: list[Operator] = [o.factory(o) for o in spec.operators]
        self._by_id = {o.spec.operator_id: o for o in self.operators}
        self._edges = edges
        self._options = options
        self._gate = ChannelWatermarks()
        self._readers = {edge: EdgeReader(edges[edge]) for edge in spec.inputs}
        self._queried = None if spec.query is None else QueryReader(spec.query)
        #: Rows of some inputs have event times and others have none; what comes out of the head has.
        self._times_differ = len({edges[edge].event_time for edge in spec.inputs}) > 1
        self._aligned = self._aligned_reading()
        self._routers: dict[int, Router] = {}
        #: What the partitions of DataFrames say of event time in this epoch, by edge.
        self._promised: dict[int, int] = {}
        self.finished = False
        #: It finished because its input was cut off, not because that ended.
        self._drained = False
        self._draining = False
        #: Operators that had finished before this attempt, some perhaps in other chains than their neighbours of now.
        self._over: set[str] = set()

    @property
    def head(self) -> Operator:
        return self.operators[0]

    def _aligned_reading(self) -> AlignedReading | None:
        timed = [o for o in self.operators if isinstance(o, TimestampsAndWatermarksOperator)]
        found = [AlignedReading(o, o.spec.alignment) for o in timed if o.spec.alignment is not None]
        return found[0] if found else None

    def connect(self) -> None:
        """Tie operators to each other and to the edges that leave the chain; environments are set by now."""
        for operator in self.operators:
            operator_id = operator.spec.operator_id
            for follower in self.spec.links.get(operator_id, ()):
                tag_id = self.spec.side_links.get(follower)
                _output_of(operator, tag_id).add_operator(self._by_id[follower])
                _look_at_rows(operator, tag_id)
            for edge_id in self.spec.outputs.get(operator_id, ()):
                edge = self._edges[edge_id]
                router = router_of(edge, self.subtask, self.subtask, operator.where, self._options)
                router.open(RuntimeContext(operator.environment))
                _output_of(operator, edge.tag_id).add_collector(router)
                if edge.partitioner.functions():
                    _look_at_rows(operator, edge.tag_id)
                self._routers[edge_id] = router
        for edge_id in self.spec.inputs:
            for channel in range(self._edges[edge_id].source_parallelism):
                self._gate.expect(edge_id, channel)

    # -- life cycle

    def bind_state(self) -> None:
        for operator in reversed(self.operators):
            operator.bind_state()

    def open(self) -> None:
        """The attempt begins: tail to head, each operator's state and then the operator, so that whatever an operator
        hands rows to is open before it.
        """
        for operator in reversed(self.operators):
            operator.initialize_state()
            operator.environment.state.initialized(operator.where)
            operator.open()

    def close(self) -> None:
        for operator in reversed(self.operators):
            operator.close()
        for router in self._routers.values():
            router.close()

    def continue_from(self, restored: RestoredJob) -> None:
        """Continue from what the operators were at a checkpoint, whatever they were chained to: time does not go back,
        and what was finished stays finished. Those that were not still have their end before them.
        """
        for operator in self.operators:
            record = restored.record(operator.spec.operator_id)
            if record is not None:
                operator.watermark = self._restored_watermark(record)
                if record.finished:
                    self._over.add(record.operator_id)
        self.finished = len(self._over) == len(self.operators)
        for edge_id in self.spec.inputs:
            for channel in range(self._edges[edge_id].source_parallelism):
                self._gate.update(edge_id, channel, ChannelStatus(self.head.watermark, False, False))

    def _restored_watermark(self, record: OperatorRecord) -> int:
        """The watermark of this subtask; with another parallelism, what all that go on had reached."""
        unfinished = [snapshot for snapshot in record.subtasks if not snapshot.finished]
        own = [s for s in unfinished if (s.subtask, record.parallelism) == (self.subtask, self.spec.parallelism)]
        times = [s.watermark for s in own or unfinished or record.subtasks if s.watermark is not None]
        return min(times, default=MIN_WATERMARK)

    # -- an epoch

    def begin_epoch(self, epoch: int, nonce: str, outbox: Outbox, drain: bool = False) -> None:
        self._draining = drain
        self._promised.clear()
        for operator in self.operators:
            operator.environment.epoch, operator.environment.nonce = epoch, nonce
            operator.rows_in = operator.output.rows = 0
        for router in self._routers.values():
            router.begin_epoch(outbox, self.head.environment.attempt, epoch)

    def notify(self, notifications: tuple[Notification, ...]) -> None:
        for notification in notifications:
            for operator in reversed(self.operators):
                if notification.kind is NotificationKind.COMPLETE:
                    operator.notify_complete(notification.checkpoint_id)
                else:
                    operator.notify_aborted(notification.checkpoint_id)

    def read_source(self, limit: ReadLimit, bounds: Mapping[str, tuple[int, ...]]) -> Iterator[int]:
        """Read this epoch's slice when the head is a source. ``bounds`` are those of watermarks, where it is aligned.
        """
        head = self.head
        if not isinstance(head, SourceOperator) or self.finished:
            return
        if head.spec.operator_id not in self._over:
            aligned = self._aligned
            if aligned is None or aligned.operator_id not in bounds:
                yield from head.read(limit)
            else:
                yield from aligned.read(head, limit, bounds[aligned.operator_id][self.subtask])
            if not head.ended:
                return
        self._finish()

    @property
    def has_more(self) -> bool:
        """Whether its source has more than it was to read in this epoch, as far as that is known."""
        return isinstance(self.head, SourceOperator) and not self.finished and self.head.has_more

    def drain_source(self) -> None:
        """Whatever the source has left, here its rows end."""
        if isinstance(self.head, SourceOperator) and not self.finished:
            self._finish()

    def receive(self, edge_id: int, channel: int, header: Header, body: memoryview) -> None:
        """One envelope of an input edge."""
        edge = self._edges[edge_id]
        self.head.begin_batch(header.rows)
        if edge.of_data_frame:
            channel = 0
        if header.rows and self._queried is not None:
            # They have gone through the query, and are here by now.
            self.head.rows_in += header.rows
        elif header.rows:
            batch = self._readers[edge_id].read(header, body)
            if self._times_differ and batch.times is None:
                batch.timestamps, batch.watermarks = [None] * len(batch), [self._gate.current()] * len(batch)
            elif edge.of_data_frame and batch.marks is not None:
                batch.watermarks = [self._gate.current()] * len(batch)
            elif batch.marks is not None:
                batch.marks = self._gate.cap(edge_id, channel, batch.marks)
            if self.head.spec.batch and batch.marks is not None:
                # Rows that timers gave at the end of the input before come with the last watermark, and are not late.
                batch.watermarks = [MIN_WATERMARK] * len(batch)
            self.push(batch, edge.input_index)
        if header.status is not None and edge.of_data_frame:
            self._promised[edge_id] = max(self._promised.get(edge_id, MIN_WATERMARK), header.status.watermark)
        elif header.status is not None:
            self._take_status(edge_id, channel, header.status)

    def receive_queried(self, rows: pa.RecordBatch) -> None:
        """What the query has made of rows of this epoch. What else their envelopes say comes behind all of them."""
        assert self._queried is not None
        self.head.begin_batch(rows.num_rows)
        mark = MIN_WATERMARK if self.head.spec.batch else self._gate.current()
        self.head.process(self._queried.read(rows, mark), 0)

    def _take_status(self, edge_id: int, channel: int, status: ChannelStatus) -> None:
        watermark = self._gate.update(edge_id, channel, status)
        if watermark > self.head.watermark and watermark != MIN_WATERMARK:
            self.head.process_watermark(watermark)

    def push(self, batch: Batch, input_index: int = 0) -> None:
        self.head.rows_in += len(batch)
        self.head.process(batch, input_index)

    def end_input(self, data_frames_read: Container[str] = ()) -> None:
        """All envelopes of the epoch are through: if every channel ended, so does this chain.

        The partitions of a DataFrame are one channel. Its event time goes on when all of them are through. The driver
        ends it: there may be none of them, and after a restore it is not read again.
        """
        self.head.begin_batch(0)
        for edge_id in self.spec.inputs:
            if self._edges[edge_id].of_data_frame and self._edges[edge_id].source_operator in data_frames_read:
                self._take_status(edge_id, 0, ChannelStatus(MAX_WATERMARK, False, True))
            elif edge_id in self._promised:
                self._take_status(edge_id, 0, ChannelStatus(self._promised[edge_id], False, False))
        if not self.finished and self.spec.inputs and self._gate.ended:
            self._finish()

    def _finish(self) -> None:
        # The head passes it on to all others, unless it had come to its end before them.
        for operator in self.operators:
            operator.process_watermark(MAX_WATERMARK)
        for operator in self._unfinished():
            if self.head.spec.batch:
                operator.fire_processing_timers(MAX_WATERMARK)
            operator.finish()
        self.finished = True
        self._drained = self._draining

    def _unfinished(self) -> list[Operator]:
        return [operator for operator in self.operators if operator.spec.operator_id not in self._over]

    def fire_processing_timers(self, now: int) -> None:
        if not self.finished and not self.head.spec.batch:
            self.head.begin_batch(0)
            for operator in self._unfinished():
                operator.fire_processing_timers(now)

    def next_processing_timer(self) -> int | None:
        if self.finished or self.head.spec.batch:
            return None
        return min((t for o in self.operators if (t := o.next_processing_timer()) is not None), default=None)

    def end_rows(self) -> None:
        head, *others = self.operators
        head.end_rows()
        if head.watermark != MIN_WATERMARK and not head.event_time_ended:
            # Rows bring their watermarks to the head alone; a status that says no more tells the others nothing.
            head.output.emit_watermark(head.watermark)
        for operator in others:
            operator.end_rows()

    def prepare_snapshot(self, checkpoint_id: int) -> None:
        for operator in self.operators:
            # Those before it may have given it more rows just now.
            operator.end_rows()
            operator.prepare_snapshot(checkpoint_id)

    def end_epoch(self, snapshot: SnapshotType | None) -> list[SinkHandle]:
        """Close the outputs with their statuses; sinks pre-commit."""
        handles: list[SinkHandle] = []
        idle = {self.head.spec.operator_id: self._gate.idle}
        for operator in self.operators:
            operator_id = operator.spec.operator_id
            handles += operator.end_epoch(EpochEnd(snapshot, self.finished or operator_id in self._over))
            operator_idle = idle[operator_id]
            if isinstance(operator, TimestampsAndWatermarksOperator):
                operator_idle = operator.idle
            for follower in self.spec.links.get(operator_id, ()):
                idle[follower] = operator_idle
            status = ChannelStatus(operator.watermark, operator_idle, self.finished)
            for edge_id in self.spec.outputs.get(operator_id, ()):
                self._routers[edge_id].close_epoch(status)
        return handles

    def recorded_progress(self, operator: Operator) -> tuple[int | None, bool]:
        """What a checkpoint says of an operator: its event time, and whether its input has ended. One that was drained
        goes on with more input, and event time begins anew.
        """
        return (None, False) if self._drained else (operator.watermark, self.finished)

    def flush_outputs(self) -> None:
        """Send the rows that wait for more, in the middle of an epoch."""
        for router in self._routers.values():
            router.flush()

    def fail_epoch(self) -> None:
        for operator in self.operators:
            operator.fail_epoch()

    def let_go(self) -> None:
        for operator in self.operators:
            operator.let_go()

    def progress(self) -> list[OperatorProgress]:
        return [
            OperatorProgress(
                o.spec.operator_id,
                self.subtask,
                o.rows_in,
                o.output.rows,
                o.watermark,
                self.finished,
                isinstance(o, TimestampsAndWatermarksOperator) and o.idle,
            )
            for o in self.operators
        ]

    # -- between epochs

    def dump(self) -> dict[str, Any]:
        return {
            "finished": self.finished,
            "over": self._over,
            "channels": self._gate.dump(),
            "routers": {edge: router.dump() for edge, router in self._routers.items()},
        }

    def load(self, dumped: dict[str, Any]) -> None:
        self.finished = dumped["finished"]
        self._over = dumped["over"]
        self._gate.load(dumped["channels"])
        for edge, router in dumped["routers"].items():
            self._routers[edge].load(router)


def _look_at_rows(operator: Operator, tag_id: str | None) -> None:
    """A function of the program is given rows of this output here, and not behind an exchange."""
    type_info = operator.spec.output_type if tag_id is None else operator.spec.side_outputs[tag_id]
    if type_info.declared and not (operator.passes_rows and tag_id is None):
        _output_of(operator, tag_id).give_declared(DeclaredRows(type_info, operator.where))


def _output_of(operator: Operator, tag_id: str | None) -> Output:
    return operator.output if tag_id is None else operator.output.side(tag_id)
