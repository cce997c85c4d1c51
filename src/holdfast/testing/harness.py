"""What all harnesses share: one subtask of one operator, in this process, with the classes of a Spark task."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

from holdfast.checkpoint.rebase import compose, full_image_due
from holdfast.errors import CheckpointError, ProgramError
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.epoch import Acknowledgement, Notification, NotificationKind
from holdfast.runtime.functions import FunctionOperator
from holdfast.runtime.live_task import forget_live_tasks
from holdfast.runtime.metric_values import DistributionValue, Plain
from holdfast.runtime.operator import MAX_WATERMARK, Operator
from holdfast.runtime.output_tag import OutputTag
from holdfast.state.descriptors import ListStateDescriptor, MapStateDescriptor
from holdfast.state.handles import CheckpointRequest, SnapshotType, SubtaskSnapshot
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.state.snapshot_io import SnapshotWriter
from holdfast.testing.assertions import check_content
from holdfast.testing.clock import ManualClock
from holdfast.testing.epochs import Epochs
from holdfast.testing.operator_places import Place
from holdfast.testing.options import Setup
from holdfast.testing.outputs import Output
from holdfast.testing.program import TestProgram, build_program
from holdfast.testing.snapshot import HarnessSnapshot
from holdfast.testing.subtasks import Subtasks

Snapshots = HarnessSnapshot | Sequence[HarnessSnapshot]

_MEMORY_LIMIT = 1 << 40
ENDED = ChannelStatus(MAX_WATERMARK, False, True)


class Harness:
    """One subtask. An epoch begins by itself with the first call that needs one, and ends when asked to.

    After an error in a function the epoch is rolled back, as a failed task is: state and fields are those of the last
    ``end_epoch`` or ``snapshot``. Everything runs in the calling thread.
    """

    def __init__(self, place: Place, setup: Setup) -> None:
        self._place = place
        self._setup = setup
        self._directory = TemporaryDirectory(prefix="holdfast-harness-")
        self.job_id = secrets.token_hex(8)
        self._program: TestProgram = build_program(place, setup, self.job_id, self._directory.name)
        self._epochs = Epochs(self._program, setup)
        self._checkpoint_id = 0 if setup.snapshot is None else setup.snapshot.checkpoint_id
        self._base: tuple[int, SubtaskSnapshot] | None = self._restored_base()
        self._closed = False
        self._begin_attempt()

    def _begin_attempt(self) -> None:
        """For what a kind of harness does on the driver before the first epoch."""

    def _restored_base(self) -> tuple[int, SubtaskSnapshot] | None:
        setup = self._setup
        if setup.snapshot is None:
            return None
        backend = self._program.plan.backend.name
        found = setup.snapshot.of_subtask(setup.subtask, setup.parallelism, setup.max_parallelism, backend)
        return None if found is None else (setup.snapshot.epoch, found)

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
    def attempt(self) -> int:
        """One more than that of the harness whose snapshot it started from."""
        return self._epochs.attempt

    @property
    def epoch(self) -> int:
        """The number of the last epoch that was committed."""
        return self._epochs.number

    @property
    def acknowledgement(self) -> Acknowledgement | None:
        """What the task of the last epoch told the coordinator."""
        return self._epochs.acknowledgement

    # -- time

    def open(self) -> Self:
        """Begin an epoch; the first time the function is opened. Optional: whatever needs an epoch begins one."""
        self._running()
        return self

    def advance_processing_time(self, milliseconds: int) -> Self:
        """Move the clock on by so much: timers that become due fire."""
        run = self._running().run()
        self._setup.clock.advance(milliseconds)
        self._epochs.step(run.fire_timers)
        return self

    @property
    def watermark(self) -> int:
        """The event time that the operator has come to."""
        return self._head().watermark

    # -- output and state

    def output(self) -> list[Any]:
        """All rows that came out since the last ``take_output``, those of rolled back epochs too."""
        return self._output().values()

    def timestamped_output(self) -> list[tuple[Any, int | None]]:
        """All rows of the output with their event times."""
        return list(self._output().rows)

    def take_output(self) -> list[Any]:
        """The output so far, which is forgotten."""
        taken = self.output()
        self._output().rows.clear()
        return taken

    def side_output(self, output_tag: OutputTag) -> list[Any]:
        """All rows that went to a side output, one of the option ``side_outputs``."""
        found = self._epochs.outputs.get(output_tag.tag_id)
        if found is None:
            raise ProgramError(f"Nobody listens to the side output '{output_tag.tag_id}': give side_outputs=[tag].")
        return found.values()

    def broadcast_state(self, descriptor: MapStateDescriptor) -> dict[Any, Any]:
        """What this subtask's copy of a broadcast state holds. Later changes do not show."""
        return dict(self._head().environment.operator_state.get_broadcast_state(descriptor).items())

    def assert_broadcast_state(self, descriptor: MapStateDescriptor, expected: Mapping[Any, Any]) -> Self:
        """AssertionError, with both sides, unless the broadcast state holds exactly that."""
        check_content(self._of(descriptor.get_name()), dict(expected), self.broadcast_state(descriptor))
        return self

    def operator_state(self, descriptor: ListStateDescriptor, union: bool = False) -> list[Any]:
        """The elements of a list of operator state; ``union`` for one that the function gets as a union list. What a
        function holds in fields comes there when it is asked for a snapshot.
        """
        states = self._head().environment.operator_state
        return (states.get_union_list_state if union else states.get_list_state)(descriptor).get()

    def metrics(self) -> dict[str, Plain | DistributionValue]:
        """What the function's metrics say now, by their names with those of their groups before them (``group.name``).
        A meter says its count, a gauge is asked.
        """
        registry = self._head().environment.metrics
        registry.sample_gauges()
        return {str(metric_id): value.value for metric_id, value in registry.values().items()}

    def accumulators(self) -> dict[str, Any]:
        """The values of this subtask's accumulators."""
        registry = self._head().environment.metrics
        return {name: accumulator.get_local_value() for name, accumulator in registry.added().items()}

    # -- epochs and snapshots

    def end_epoch(self) -> Self:
        """Commit what happened to the local store, as a task does at the end of an epoch."""
        self._running()
        self._finish_epoch()
        return self

    def fail(self) -> Self:
        """The running task fails: what happened since the last ``end_epoch`` or ``snapshot`` is undone."""
        self._running().abandon()
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
            self.attempt,
            self.epoch + 1,
            None if base is None else base[0],
        )
        written = self.checkpoint(request, MemorySnapshotWriter(_MEMORY_LIMIT))
        composed = compose(written, None if base is None else base[1], full_wanted=base is None)
        self._base = (request.epoch, composed)
        self.notify_checkpoint_complete(request.checkpoint_id, request.epoch)
        return HarnessSnapshot.of_one(self._program.operator, request, composed, self.job_id)

    def checkpoint(self, request: CheckpointRequest, writer: SnapshotWriter) -> SubtaskSnapshot:
        """End the epoch with the checkpoint that a coordinator asks for, and give what the subtask acknowledges.

        What becomes of it is told by ``notify_checkpoint_complete`` or ``notify_checkpoint_aborted``.
        """
        running = self._running()
        if request.epoch != running.number + 1:
            raise CheckpointError(
                f"Checkpoint {request.checkpoint_id} is asked of epoch {request.epoch}; "
                f"the one that runs is {running.number + 1}."
            )
        running.ask(checkpoint=request, writer=writer)
        acknowledgement = self._finish_epoch()
        if acknowledgement.snapshot_failure is not None:
            raise CheckpointError(
                f"Checkpoint {request.checkpoint_id} could not be written: {acknowledgement.snapshot_failure}"
            )
        (written,) = acknowledgement.snapshots
        return written

    def notify_checkpoint_complete(self, checkpoint_id: int, epoch: int) -> None:
        """A checkpoint of ``epoch`` completed: the next epoch tells the function and drops marks of older changes."""
        self._epochs.durable_epoch = max(self._epochs.durable_epoch, epoch)
        self._epochs.notify(Notification(NotificationKind.COMPLETE, checkpoint_id))

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """A checkpoint came to nothing: the next epoch tells the function."""
        self._epochs.notify(Notification(NotificationKind.ABORTED, checkpoint_id))

    def forget_live_objects(self) -> Self:
        """Between epochs: go on as a worker process that does not hold the function, from the host's disk."""
        if self._epochs.running:
            raise ProgramError("An epoch runs; call end_epoch() before forget_live_objects().")
        forget_live_tasks(self.job_id)
        return self

    # -- another one, from a snapshot

    def restored(self, snapshot: Snapshots | None = None, function: Any = None, **changes: Any) -> Self:
        """A harness of the same operator that starts from a snapshot: one that is taken now, or an earlier one. This
        one is dropped, as a job that failed is.

        ``function`` is what the operator runs from now on, and ``changes`` are options, for a program that changed.
        """
        taken = self.snapshot() if snapshot is None else snapshot
        self._drop()
        return self._another(taken, function, changes)

    def rescaled(self, parallelism: int, function: Any = None, **changes: Any) -> Subtasks[Self]:
        """All subtasks of another parallelism, each with its share of a snapshot that is taken now of this one, the
        only one.
        """
        taken = self.snapshot()
        self._drop()
        return self._all(taken, parallelism, function, changes)

    @classmethod
    def parallel(cls, parallelism: int, /, *arguments: Any, **options: Any) -> Subtasks[Self]:
        """All subtasks of a parallelism, which start from nothing and share a clock. The other arguments are those of
        the class.
        """
        shared = {"clock": ManualClock(), **options, "parallelism": parallelism}
        places = [{**shared, "subtask": subtask} for subtask in range(parallelism)]
        return Subtasks([cls(*arguments, **place) for place in places])

    @classmethod
    def restore(cls, snapshots: Snapshots, /, *arguments: Any, **options: Any) -> Self:
        """A subtask that starts from a snapshot: of itself, or one of every subtask where parallelism is above 1. The
        other arguments are those of the class.
        """
        merged = HarnessSnapshot.merged(snapshots)
        return cls(*arguments, **{**merged.layout, **options, "snapshot": merged})

    @classmethod
    def rescale(cls, snapshots: Snapshots, parallelism: int, /, *arguments: Any, **options: Any) -> Subtasks[Self]:
        """All subtasks of a new parallelism, each starting from its share of the snapshots."""
        merged = HarnessSnapshot.merged(snapshots)
        return cls.parallel(parallelism, *arguments, **{**merged.layout, **options, "snapshot": merged})

    def _another(self, snapshots: Snapshots, function: Any, changes: Mapping[str, Any]) -> Self:
        merged = HarnessSnapshot.merged(snapshots)
        place = self._place if function is None else replace(self._place, function=function)
        harness = type(self).__new__(type(self))
        Harness.__init__(harness, place, self._setup.changed({**merged.layout, **changes, "snapshot": merged}))
        return harness

    def _all(
        self, snapshots: Snapshots, parallelism: int, function: Any, changes: Mapping[str, Any]
    ) -> Subtasks[Self]:
        places = [{"parallelism": parallelism, "subtask": subtask} for subtask in range(parallelism)]
        return Subtasks([self._another(snapshots, function, {**changes, **place}) for place in places])

    # -- the end

    def close(self) -> None:
        """Close the function in order and remove the local store. Nothing else can be done with the harness."""
        if self._closed:
            return
        try:
            if self._epochs.begun:
                self._epochs.ask(close=True)
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
        self._epochs.abandon()
        forget_live_tasks(self.job_id)
        self._directory.cleanup()

    # -- inside

    def _running(self) -> Epochs:
        """The epochs, of which one runs."""
        if self._closed:
            raise ProgramError("The harness is closed.")
        self._epochs.run()
        return self._epochs

    def _head(self) -> Operator:
        return self._running().head()

    def _output(self) -> Output:
        return self._epochs.outputs[None]

    def _finish_epoch(self) -> Acknowledgement:
        return self._epochs.finish()

    def _of(self, state_name: str) -> str:
        """How messages of failed assertions name a state."""
        return f"State '{state_name}' of {self._program.operator.describe(self._setup.subtask)}"
