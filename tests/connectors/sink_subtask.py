"""A file sink as one subtask drives it."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import pyarrow as pa

from holdfast.connectors.file_sink.sink import FileSink
from holdfast.runtime.batch import Batch
from holdfast.runtime.epoch import EpochEnd
from holdfast.state.handles import SnapshotType
from holdfast.testing.contracts.sinks import transaction_name

CHECKPOINT = EpochEnd(SnapshotType.CHECKPOINT)


class HandClock:
    now: ClassVar[float] = 0.0

    def __call__(self) -> float:
        return HandClock.now


class Subtask:
    """A sink as one subtask drives it, epoch by epoch."""

    def __init__(self, sink: FileSink, type_info: Any = int, number: int = 0, subtasks: int = 1) -> None:
        self.sink = FileSink(
            sink._storage.uri, sink._format, dataclasses.replace(sink._options, clock=HandClock())
        )
        self.sink.bind_type(type_info)
        self.sink.bind_parallelism(subtasks)
        self.sink.bind_publication(True)
        self._number = number
        self._epoch = 0

    def epoch(
        self, *batches: list[Any] | pa.RecordBatch, end: EpochEnd = CHECKPOINT, seconds: float = 1
    ) -> bytes | None:
        """Each batch takes some seconds."""
        self._epoch += 1
        begun: list[Any] = []

        def transaction() -> Any:
            if not begun:
                begun.append(self.sink.begin(transaction_name(self._epoch, self._number)))
            return begun[0]

        for batch in batches:
            self.sink.write(transaction(), Batch(batch) if isinstance(batch, list) else Batch.of_arrow(batch, list))
            HandClock.now += seconds
        self.sink.end_epoch(transaction, end)
        return self.sink.pre_commit(begun[0]) if begun else None
