"""The contract of sources: functions whose position is operator state.

A source runs in level 0 of every epoch, in Spark tasks. It never decides when an epoch ends: it is asked for at
most so many rows, and its position after them is part of the same epoch as the rows.

``SourceFunction`` is the contract itself: with ``CheckpointedFunction`` it keeps its splits and offsets in whatever
operator state it declares. ``Source`` and ``SourceReader`` are a form of it for sources whose positions are one union
list, and are hosted by ``ReadingFunction``.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import RestoreError
from holdfast.runtime.batch import Batch
from holdfast.runtime.contracts import CheckpointedFunction, CheckpointListener, Function
from holdfast.runtime.output_tag import OutputTag
from holdfast.state.descriptors import ListStateDescriptor
from holdfast.types.resolve import resolve

if TYPE_CHECKING:
    from holdfast.runtime.context import FunctionInitializationContext, FunctionSnapshotContext

#: The state that a source keeps its positions in.
POSITIONS = "_positions"


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """Where a reader runs, and what was restored for it."""

    subtask: int
    parallelism: int
    #: All positions that all subtasks had at the restored snapshot (a union list); None on a fresh start.
    restored: list[Any] | None
    #: What ``Source.prepare`` gave on the driver when this attempt's first epoch began.
    prepared: Any = None
    #: How messages name the subtask.
    task: str = "the source"


def _no_split(split: str) -> bool:
    return False


@dataclass(slots=True)
class ReadLimit:
    """How much one subtask may read in one epoch. A source looks at it before each batch: the deadline may come early.
    """

    rows: int
    deadline: float  # time.monotonic() of the task's process
    #: Whether a split, by the name in its batches' ``Origin``, is to wait: it is ahead of others in event time.
    waits: Callable[[str], bool] = _no_split

    def stop(self) -> None:
        """No batch is wanted behind the one that was given last."""
        self.deadline = -math.inf


class SourceWatch(ABC):
    """What a driver can learn of a source without a task, so that a job whose sources have nothing runs no epoch.

    It is made for each attempt, and used by one thread of the driver alone.
    """

    #: An epoch that begins so much later than a change was seen finds what there is to read.
    settles_ms: int = 0

    @abstractmethod
    def look(self) -> Hashable:
        """Something that differs from what it was whenever there may be more to read. It is called about twice a
        second while the job has nothing to do; an error counts as a change, and the epoch behind it says what is wrong.
        """

    def close(self) -> None:
        """The attempt has ended."""


class SourceFunction(Function):
    """A source of one subtask that is written as a function: it may have operator state and be notified of checkpoints.

    Called in this order: ``initialize_state``, ``open``, then once per epoch ``read``, and ``snapshot_state`` at
    checkpoints; ``close`` at the end. Fields live for the attempt, as those of every function do.
    """

    #: The most subtasks that it runs with; None for any number.
    max_parallelism: int | None = 1
    #: True once nothing more will ever come. Checked after ``read``.
    ended: bool = False
    #: True when it is known to come to an end, as sources of a program in BATCH mode must.
    bounded: bool = False

    @abstractmethod
    def read(self, limit: ReadLimit) -> Iterable[Batch | list[Any]]:
        """Rows of this epoch, in lists, at most ``limit.rows`` of them; they count as read when the iterator is
        exhausted. Must not wait for data.
        """

    def watch(self) -> SourceWatch | None:
        """How the driver sees that there may be more; None: only an epoch can tell."""
        return None


class ParallelSourceFunction(SourceFunction):
    """A source that divides its input between any number of subtasks."""

    max_parallelism = None


class SourceReader(ABC):
    """One subtask of a source. Lives for an attempt: it is made once, then read once per epoch.

    Between epochs it is pickled with the subtask's other fields, so open files and connections belong in attributes
    that ``__getstate__`` leaves out.
    """

    #: True once nothing more will ever come. Checked after ``read``.
    ended: bool = False

    @abstractmethod
    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        """Rows of this epoch; their position counts as read when the iterator is exhausted. Must not wait for data."""

    @abstractmethod
    def positions(self) -> list[Any]:
        """The elements of the source's union list state, each of the source's ``position_type``."""

    def positions_at(self, checkpoint_id: int) -> list[Any]:
        """``positions()`` for a checkpoint: of which it may be told later that it completed."""
        return self.positions()

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The positions of this checkpoint are durable: upstream may be told. Best effort."""

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        """The checkpoint came to nothing. Best effort."""

    def close(self) -> None:
        """Called once at the end of the attempt, where it ends in order."""


class Source(SaysWhatToUse, ABC):
    """The picklable description of a source, made on the driver."""

    #: True when it can end by itself.
    bounded: bool
    #: 1 for sources that keep one order.
    max_parallelism: int | None = None
    #: True when its batches have an ``Origin``, whose times stand in for those of a timestamp assigner.
    has_record_times: bool = False
    #: The side output that its ``SideBatch``es go to, if there is one.
    side_output: OutputTag | None = None

    @abstractmethod
    def output_type(self) -> Any:
        """The type of its rows, anything that ``holdfast.types.resolve`` takes, or None for pickled rows."""

    def position_type(self) -> Any:
        """The type of the elements of its readers' ``positions``, anything that ``holdfast.types.resolve`` takes.

        None: they are pickled, and a restore of the source from a path must allow that. The fields of a named row may
        be added to later, as those of any state.
        """
        return None

    @staticmethod
    def typed_position(pickled: Any) -> Any:
        """A position of the ``position_type``, of one that was stored before the source declared any."""
        return pickled

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader: ...

    def watch(self) -> SourceWatch | None:
        """How the driver sees that there may be more; None: only an epoch can tell. Of sources without an end."""
        return None


def positions_of(source: Source) -> ListStateDescriptor:
    """The state that a source's positions are kept in. Version 0 is pickled: what a source has that declares no type,
    and what all sources had once.
    """
    declared = resolve(source.position_type())
    descriptor = ListStateDescriptor(POSITIONS, declared)
    return descriptor if declared.pickled else descriptor.migrate_from(0, source.typed_position)


class WrappingReader(SourceReader):
    """A reader around another one, to which it passes on what it does not change."""

    def __init__(self, wrapped_reader: SourceReader) -> None:
        self.wrapped_reader = wrapped_reader

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        yield from self.wrapped_reader.read(limit)
        self.ended = self.wrapped_reader.ended

    def positions(self) -> list[Any]:
        return self.wrapped_reader.positions()

    def positions_at(self, checkpoint_id: int) -> list[Any]:
        return self.wrapped_reader.positions_at(checkpoint_id)

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.wrapped_reader.notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.wrapped_reader.notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self.wrapped_reader.close()


class ReadingFunction(ParallelSourceFunction, CheckpointedFunction, CheckpointListener):
    """A ``Source`` as a source function: its reader's positions are a union list, so that every subtask sees all of
    them at a restore and takes its share.
    """

    def __init__(self, source: Source) -> None:
        self._source: Source | None = source
        self._reader: SourceReader | None = None

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        if context.has_restored_state() and POSITIONS not in store.get_registered_state_names():
            raise RestoreError(
                f"{self.get_runtime_context().get_task_name_with_subtasks()} is a source, and what is restored under "
                "its uid comes from an operator that was none: it does not say how far the source has read, so the "
                "source would read nothing, or everything again. Give the source another uid, under which it starts "
                "anew, or restore the source that wrote the snapshot."
            )
        assert self._source is not None
        self._positions = store.get_union_list_state(positions_of(self._source))
        restored = self._positions.get() if context.has_restored_state() else None
        runtime = self.get_runtime_context()
        place = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        task = runtime.get_task_name_with_subtasks()
        self._reader = self._source.create_reader(ReaderContext(*place, restored, task=task))
        # Fields travel between epochs, and a source may hold all of its rows.
        self._source = None

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        reader = self._live_reader()
        yield from reader.read(limit)
        self.ended = reader.ended

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self._positions.update(self._live_reader().positions_at(context.get_checkpoint_id()))

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self._live_reader().notify_checkpoint_complete(checkpoint_id)

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self._live_reader().notify_checkpoint_aborted(checkpoint_id)

    def close(self) -> None:
        self._live_reader().close()

    def _live_reader(self) -> SourceReader:
        assert self._reader is not None, "initialize_state has made it"
        return self._reader
