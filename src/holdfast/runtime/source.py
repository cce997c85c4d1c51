"""The contract of Holdfast's own sources: functions whose position is operator state.

A source runs in level 0 of every epoch, in Spark tasks. It never decides when an epoch ends: it is asked for at
most so many rows, and its position after them is part of the same epoch as the rows.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.runtime.batch import Batch


@dataclass(frozen=True, slots=True)
class ReaderContext:
    """Where a reader runs, and what was restored for it."""

    subtask: int
    parallelism: int
    #: All positions that all subtasks had at the restored snapshot (a union list); None on a fresh start.
    restored: list[Any] | None
    #: What ``Source.prepare`` gave on the driver when this attempt's first epoch began.
    prepared: Any = None


@dataclass(frozen=True, slots=True)
class ReadLimit:
    """How much one subtask may read in one epoch."""

    rows: int
    deadline: float  # time.monotonic() of the task's process


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
        """The elements of the source's union list state: picklable, msgspec-encodable (dict, list, tuple, str, int,
        bytes).
        """

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        """The positions of this checkpoint are durable: upstream may be told. Best effort."""

    def close(self) -> None:
        """Called once at the end of the attempt, where it ends in order."""


class Source(ABC):
    """The picklable description of a source, made on the driver."""

    #: True when it can end by itself.
    bounded: bool
    #: 1 for sources that keep one order.
    max_parallelism: int | None = None

    @abstractmethod
    def output_type(self) -> Any:
        """The type of its rows, anything that ``holdfast.types.resolve`` takes, or None for pickled rows."""

    @abstractmethod
    def create_reader(self, context: ReaderContext) -> SourceReader: ...
