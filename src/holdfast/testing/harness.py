"""Runs one subtask of one operator in this process, with the classes that run it in a Spark task."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self, TypeVar

from holdfast.checkpoint.rebase import compose, full_image_due
from holdfast.errors import CheckpointError, ProgramError
from holdfast.runtime.envelope import COORDINATOR_EDGE, ChannelStatus, Envelope, unpack_header
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, Notification, NotificationKind
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.operator import MAX_WATERMARK, Operator
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.router import EdgeReader, Outbox
from holdfast.runtime.task import TaskRun, read_acknowledgement
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.state.handles import CheckpointRequest, SnapshotType, SubtaskSnapshot
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.testing.clock import ManualClock
from holdfast.testing.inputs import Input
from holdfast.testing.options import Setup
from holdfast.testing.outputs import Output
from holdfast.testing.program import LEVEL, KeyBy, TestProgram, build_program
from holdfast.testing.snapshot import HarnessSnapshot

_SENDER = 0
_MEMORY_LIMIT = 1 << 40
_ENDED = ChannelStatus(MAX_WATERMARK, False, True)

T = TypeVar("T")


class Harness:
    """What keyed and other harnesses share. Rows go in by ``push``; epochs end when asked to.

    An epoch begins by itself with the first call that needs one. After an error in a function the epoch is rolled
    back, as a failed task is: state and fields are those of the last ``end_epoch`` or ``snapshot``. Everything runs in
    the calling thread.
    """

    def __init__(self, function: Any, key_by: KeyBy | None, setup: Setup, restored: HarnessSnapshot | None) -> None:
        self._setup = setup
        self._directory = TemporaryDirectory(prefix="holdfast-harness-")
        self.job_id = secrets.token_hex(8)
        self._program: TestProgram = build_program(function, key_by, setup, self.job_id, self._directory.name)
        self._restored = restored
        self._attempt = 1 if restored is None else restored.attempt + 1
        self._epoch = self._restore_epoch = 0 if restored is None else restored.epoch
        self._checkpoint_id = 0 if restored is None else restored.checkpoint_id
        self._nonce: str | None = None
        self._durable_epoch = -1 if restored is None else restored.epoch
        self._notifications: list[Notification] = []
        self._base: tuple[int, SubtaskSnapshot] | None = self._restored_base()
        self._run: TaskRun | None = None
        self._output = Output(self._program.output)
        self._side_outputs = {tag: Output(edge) for tag, edge in self._program.side_outputs.items()}
        where = f"the input of {self._program.operator.describe(setup.subtask)}"
        self._inputs = [Input(edge, setup.subtask, where, self._program.plan.options) for edge in self._program.inputs]
        self._closed = False
        #: What the task of the last epoch told the coordinator.
        self.acknowledgement: Acknowledgement | None = None

    def _restored_base(self) -> tuple[int, SubtaskSnapshot] | None:
        setup = self._setup
        if self._restored is None:
            return None
        backend = self._program.plan.backend.name
        found = self._restored.of_subtask(setup.subtask, setup.parallelism, setup.max_parallelism, backend)
        return None if found is None else (self._restored.epoch, found)

    @property
    def operator_id(self) -> str:
        return self._program.operator.operator_id

    @property
    def function(self) -> Any:
        """The live function object. After an error or ``forget_live_objects`` it is another one."""
        head = self._head()
        assert isinstance(head, FunctionOperator)
        return head.function

    @property
    def clock(self) -> ManualClock:
        return self._setup.clock

    @property
    def epoch(self) -> int:
        """The number of the last epoch that was committed."""
        return self._epoch

    # -- input

    def open(self) -> Self:
        """Begin an epoch; the first time the function is opened. Optional: whatever needs an epoch begins one."""
        self._running()
        return self

    def push(self, value: Any, timestamp: int | None = None) -> Self:
        """One row."""
        return self.push_all([value], None if timestamp is None else [timestamp])

    def push_all(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several rows, in one batch."""
        return self._push(self._inputs[0], values, timestamps)

    def push_broadcast(self, value: Any, timestamp: int | None = None) -> Self:
        """One element of the broadcast stream."""
        return self.push_all_broadcast([value], None if timestamp is None else [timestamp])

    def push_all_broadcast(self, values: Iterable[Any], timestamps: Sequence[int | None] | None = None) -> Self:
        """Several elements of the broadcast stream, in one batch. A job pushes those of an epoch before its rows."""
        return self._push(self._broadcast_input(), values, timestamps)

    def advance_watermark(self, timestamp: int) -> Self:
        """Event time has come to ``timestamp``: timers up to it fire. With a broadcast stream, only when both have."""
        return self._advance(self._inputs[0], timestamp)

    def advance_broadcast_watermark(self, timestamp: int) -> Self:
        """Event time of the broadcast stream has come to ``timestamp``."""
        return self._advance(self._broadcast_input(), timestamp)

    def advance_processing_time(self, milliseconds: int) -> Self:
        """Move the clock on by so much: timers that become due fire."""
        run = self._running()
        self._setup.clock.advance(milliseconds)
        self._step(run.fire_timers)
        return self

    def end_input(self) -> Self:
        """No more rows on any input: event time ends, ``finish`` is called, and so ends the epoch."""
        for each in self._inputs:
            self._send_status(each, _ENDED)
        return self.end_epoch()

    def end_broadcast_input(self) -> Self:
        """No more elements of the broadcast stream: from now on the other one alone moves event time."""
        self._send_status(self._broadcast_input(), _ENDED)
        return self

    # -- output

    def output(self) -> list[Any]:
        """All rows that came out since the last ``take_output``, those of rolled back epochs too."""
        return self._output.values()

    def timestamped_output(self) -> list[tuple[Any, int | None]]:
        """The same rows with their event times."""
        return list(self._output.rows)

    def take_output(self) -> list[Any]:
        """The output so far, which is forgotten."""
        taken = self.output()
        self._output.rows.clear()
        return taken

    def side_output(self, output_tag: OutputTag) -> list[Any]:
        """All rows that went to a side output, one of the option ``side_outputs``."""
        found = self._side_outputs.get(output_tag.tag_id)
        if found is None:
            raise ProgramError(f"Nobody listens to the side output '{output_tag.tag_id}': give side_outputs=[tag].")
        return found.values()

    @property
    def watermark(self) -> int:
        """The event time that the operator has come to."""
        return self._head().watermark

    def broadcast_state(self, descriptor: MapStateDescriptor) -> dict[Any, Any]:
        """What this subtask's copy of a broadcast state holds. Later changes do not show."""
        return dict(self._head().environment.operator_state.get_broadcast_state(descriptor).items())

    # -- epochs and snapshots

    def end_epoch(self) -> Self:
        """Commit what happened to the local store, as a task does at the end of an epoch."""
        self._running()
        self._finish_epoch()
        return self

    def snapshot(self, full: bool = False) -> HarnessSnapshot:
        """End the epoch with a checkpoint that completes: a delta on the one before, or a full image."""
        base = self._base
        if full or base is None or (base[1].keyed is not None and full_image_due(base[1].keyed)):
            base = None
        self._checkpoint_id += 1
        request = CheckpointRequest(
            self._checkpoint_id,
            SnapshotType.CHECKPOINT,
            self._setup.clock(),
            self._attempt,
            self._epoch + 1,
            None if base is None else base[0],
        )
        written = self.checkpoint(request, MemorySnapshotWriter(_MEMORY_LIMIT))
        composed = compose(written, None if base is None else base[1], full_wanted=base is None)
        self._base = (request.epoch, composed)
        self.notify_checkpoint_complete(request.checkpoint_id, request.epoch)
        return HarnessSnapshot.of_one(self._program.operator, request, composed)

    def checkpoint(self, request: CheckpointRequest, writer: SnapshotWriter) -> SubtaskSnapshot:
        """End the epoch with the checkpoint that a coordinator asks for, and give what the subtask acknowledges.

        What becomes of it is told by ``notify_checkpoint_complete`` or ``notify_checkpoint_aborted``.
        """
        run = self._running()
        if request.epoch != run.spec.epoch:
            raise CheckpointError(
                f"Checkpoint {request.checkpoint_id} is asked of epoch {request.epoch}; "
                f"the one that runs is {run.spec.epoch}."
            )
        run.spec = replace(run.spec, checkpoint=request, writer=writer)
        acknowledgement = self._finish_epoch()
        if acknowledgement.snapshot_failure is not None:
            raise CheckpointError(
                f"Checkpoint {request.checkpoint_id} could not be written: {acknowledgement.snapshot_failure}"
            )
        (written,) = acknowledgement.snapshots
        return written

    def notify_checkpoint_complete(self, checkpoint_id: int, epoch: int) -> None:
        """A checkpoint of ``epoch`` completed: the next epoch tells the function and drops marks of older changes."""
        self._durable_epoch = max(self._durable_epoch, epoch)
        self._notifications.append(Notification(NotificationKind.COMPLETE, checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint came to nothing: the next epoch tells the function."""
        self._notifications.append(Notification(NotificationKind.ABORTED, checkpoint_id))

    def forget_live_objects(self) -> Self:
        """Between epochs: go on as a worker process that does not hold the function, from the host's disk."""
        if self._run is not None:
            raise ProgramError("An epoch runs; call end_epoch() before forget_live_objects().")
        forget_live_tasks(self.job_id)
        return self

    # -- the end

    def close(self) -> None:
        """Close the function in order and remove the local store. Nothing else can be done with the harness."""
        if self._closed:
            return
        try:
            if self._run is not None or self._nonce is not None:
                run = self._running()
                run.spec = replace(run.spec, close=True)
                self._finish_epoch()
        finally:
            self._drop()

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()
        else:
            self._drop()

    def _drop(self) -> None:
        self._closed = True
        if self._run is not None:
            self._run.abandon()
            self._run = None
        forget_live_tasks(self.job_id)
        self._directory.cleanup()

    # -- the task of an epoch

    def _head(self) -> Operator:
        return self._running().chains[0].head

    def _running(self) -> TaskRun:
        """The task of the running epoch, begun now if there is none."""
        if self._closed:
            raise ProgramError("The harness is closed.")
        if self._run is None:
            slots, subtask = self._program.plan.slots, self._setup.subtask
            self._inbox, self._outbox = Outbox(_SENDER, slots), Outbox(subtask, slots)
            for each in self._inputs:
                each.begin_epoch(self._inbox)
            run = TaskRun(
                self._program.plan, LEVEL, subtask, self._spec(), self._restored_job, self._setup.clock, self._outbox
            )
            self._run = run
            self._step(run.start, [_SENDER])
            self._notifications.clear()
        return self._run

    def _spec(self) -> EpochSpec:
        slots = self._program.plan.slots
        return EpochSpec(
            attempt=self._attempt,
            epoch=self._epoch + 1,
            accepted=() if self._nonce is None else ((), (self._nonce,) * slots),
            restore_epoch=self._restore_epoch,
            restored=self._restored is not None,
            rows_per_subtask=0,
            max_millis=0,
            reader=None if self._restored is None else self._restored.reader,
            notifications=tuple(self._notifications),
            durable_epoch=self._durable_epoch,
        )

    def _restored_job(self) -> Any:
        return None if self._restored is None else self._restored.restored_job()

    def _broadcast_input(self) -> Input:
        if len(self._inputs) == 1:
            raise ProgramError("The operator has no broadcast stream: make the harness with broadcast_states=[...].")
        return self._inputs[1]

    def _push(self, target: Input, values: Iterable[Any], timestamps: Sequence[int | None] | None) -> Self:
        if timestamps is not None and not self._setup.event_time:
            raise ProgramError("The harness was made with event_time=False: its rows have no timestamps.")
        self._running()
        with self._rolling_back():
            target.send(list(values), timestamps)
        self._deliver()
        return self

    def _advance(self, target: Input, timestamp: int) -> Self:
        self._send_status(target, ChannelStatus(max(target.watermark, timestamp), False, False))
        return self

    def _send_status(self, target: Input, status: ChannelStatus) -> None:
        self._running()
        target.send_status(status)
        self._deliver()

    def _deliver(self) -> None:
        """Hand what the router sent to the task."""
        run = self._running()
        for envelope in self._inbox.take_all():
            if envelope.slot == self._setup.subtask:
                self._step(run.receive, envelope)
            elif unpack_header(envelope.payload)[0].rows:
                raise self._of_another_subtask(envelope)

    def _of_another_subtask(self, envelope: Envelope) -> ProgramError:
        header, body = unpack_header(envelope.payload)
        batch = EdgeReader(self._inputs[0].edge).read(header, body)
        return ProgramError(
            f"The key {(batch.keys or [None])[0]!r} belongs to subtask {envelope.slot} of {self._setup.parallelism}, "
            f"and this harness is subtask {self._setup.subtask}. Push the row there; owns(row) tells whose it is."
        )

    def _finish_epoch(self) -> Acknowledgement:
        run = self._running()
        for envelope in self._inbox.close(run.spec.barrier("harness")):
            if envelope.slot == self._setup.subtask:
                self._step(run.receive, envelope)
        self._step(run.end_input)
        self._step(run.close_outputs)
        last = self._step(run.commit)
        (told,) = (e for e in last if e.edge == COORDINATOR_EDGE)
        self.acknowledgement = read_acknowledgement(bytes(memoryview(told.payload)))
        self._nonce, self._epoch, self._run = self.acknowledgement.nonce, run.spec.epoch, None
        return self.acknowledgement

    def _step(self, step: Callable[..., T], *arguments: Any) -> T:
        """One step of the task, and the output that it gives."""
        run = self._run
        assert run is not None
        with self._rolling_back():
            result = step(*arguments)
            run.chains[0].flush_outputs()
        for envelope in self._outbox.take_all():
            for output in (self._output, *self._side_outputs.values()):
                output.capture(envelope)
        return result

    @contextmanager
    def _rolling_back(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            run, self._run = self._run, None
            if run is not None:
                run.abandon()
                for each in self._inputs:
                    each.roll_back()
            raise
