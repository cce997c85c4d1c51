"""Functions with operator state, as a user of Flink would write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from holdfast.common import Types
from holdfast.datastream import (
    CheckpointedFunction,
    CheckpointListener,
    FlatMapFunction,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    MapFunction,
    ParallelSourceFunction,
    ReadLimit,
    RichFlatMapFunction,
    RuntimeContext,
    TwoPhaseCommitSink,
    WrappingSink,
)
from holdfast.datastream.state import ListStateDescriptor
from holdfast.runtime.batch import Batch

EVENTS = [1, 2, 3, 4, 5, 1, 3, 4, 5, 6, 7, 1, 4, 5, 3, 9, 9, 2, 1]
BETWEEN_ONES = ["(4; 2 3 4 5)", "(5; 3 4 5 6 7)", "(6; 4 5 3 9 9 2)"]


class CountWithOperatorState(FlatMapFunction, CheckpointedFunction):
    """What happened between two events 1: how many, and which."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.stored = store.get_list_state(ListStateDescriptor("seen", Types.LONG()))
        self.seen = self.stored.get()

    def flat_map(self, value: int) -> Iterator[str]:
        if value == 1 and self.seen:
            between = self.seen[1:]
            yield f"({len(between)}; {' '.join(map(str, between))})"
            self.seen = []
        if value == 1 or self.seen:
            self.seen.append(value)

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.seen)


class DealtOut(RichFlatMapFunction, CheckpointedFunction):
    """Keeps a share of a union list. It grows by a number per row, and every row tells the share."""

    def __init__(self, first: Iterable[int]) -> None:
        self.first = list(first)
        self.mine: list[int] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        self.stored = store.get_union_list_state(ListStateDescriptor("dealt out", Types.LONG()))
        everything = self.stored.get() if context.is_restored() else self.first
        runtime = self.get_runtime_context()
        subtask, parallelism = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        self.mine = [number for place, number in enumerate(everything) if place % parallelism == subtask]

    def flat_map(self, value: int) -> Iterator[int]:
        self.mine.append(value)
        yield from self.mine

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.mine)


class BufferingSink(WrappingSink, CheckpointedFunction):
    """Hands rows to another sink only when there are enough of them; those that wait are operator state."""

    def __init__(self, sink: TwoPhaseCommitSink, threshold: int) -> None:
        super().__init__(sink)
        self.threshold = threshold
        self.waiting: list[Any] = []

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        super().initialize_state(context)
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("waiting", Types.LONG()))
        self.waiting = self.stored.get()

    def write(self, transaction: Any, batch: Batch) -> None:
        self.waiting += batch.values
        if len(self.waiting) >= self.threshold:
            self.flush(transaction)

    def flush(self, transaction: Any) -> None:
        rows, self.waiting = self.waiting, []
        super().write(transaction, Batch(rows))

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        super().snapshot_state(context)
        self.stored.update(self.waiting)

    def end_input(self, transaction: Callable[[], Any]) -> None:
        if self.waiting:
            self.flush(transaction())
        super().end_input(transaction)


class Splits(ParallelSourceFunction, CheckpointedFunction):
    """Numbers in splits of (next, end). Splits are dealt out with a union list, or left to a list that is split."""

    def __init__(self, splits: list[tuple[int, int]], union: bool) -> None:
        self.all = splits
        self.union = union

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        store = context.get_operator_state_store()
        descriptor = ListStateDescriptor("splits", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.stored = (store.get_union_list_state if self.union else store.get_list_state)(descriptor)
        runtime = self.get_runtime_context()
        subtask, parallelism = runtime.get_index_of_this_subtask(), runtime.get_number_of_parallel_subtasks()
        if context.has_restored_state() and not self.union:
            self.mine = self.stored.get()
            return
        splits = sorted(self.stored.get()) if context.has_restored_state() else self.all
        self.mine = [split for place, split in enumerate(splits) if place % parallelism == subtask]

    def read(self, limit: ReadLimit) -> Iterator[list[int]]:
        left = limit.rows
        while self.mine and left:
            first, end = self.mine.pop(0)
            rows = list(range(first, min(end, first + left)))
            left -= len(rows)
            if first + len(rows) < end:
                self.mine.append((first + len(rows), end))
            yield rows
        self.ended = not self.mine

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.stored.update(self.mine)


class Noting:
    """Writes every call of the life cycle to a file, under the name of who was called."""

    def __init__(self, name: str, log: Path) -> None:
        self.name, self.log = name, log

    def note(self, what: str) -> None:
        with self.log.open("a") as file:
            file.write(f"{self.name} {what}\n")

    def initialize_state(self, context: FunctionInitializationContext) -> None:
        self.note("initialize_state")
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("noted", Types.STRING()))

    def open(self, runtime_context: RuntimeContext) -> None:
        self.note("open")

    def prepare_snapshot_pre_barrier(self, checkpoint_id: int) -> list[str]:
        self.note("prepare_snapshot_pre_barrier")
        return [f"{self.name} before the barrier"]

    def snapshot_state(self, context: FunctionSnapshotContext) -> None:
        self.note("snapshot_state")
        self.stored.update([f"of checkpoint {context.get_checkpoint_id()}"])

    def notify_checkpoint_complete(self, checkpoint_id: int) -> None:
        self.note("notify_checkpoint_complete")

    def notify_checkpoint_aborted(self, checkpoint_id: int) -> None:
        self.note("notify_checkpoint_aborted")

    def finish(self) -> list[str]:
        self.note("finish")
        return [f"{self.name} at the end"]

    def close(self) -> None:
        self.note("close")


class NotingMap(Noting, MapFunction, CheckpointedFunction, CheckpointListener):
    """Passes rows on, and notes them."""

    def map(self, value: str) -> str:
        self.note(f"row {value}")
        return value


class NotingSource(Noting, ParallelSourceFunction, CheckpointedFunction, CheckpointListener):
    """One row per epoch."""

    max_parallelism = 1

    def __init__(self, name: str, log: Path, rows: list[str]) -> None:
        super().__init__(name, log)
        self.rows = rows

    def read(self, limit: ReadLimit) -> Iterator[list[str]]:
        if self.rows:
            yield [self.rows.pop(0)]
        self.ended = not self.rows


class NotingSink(Noting, WrappingSink):
    """Notes what else becomes of a sink."""

    def __init__(self, name: str, log: Path, sink: TwoPhaseCommitSink) -> None:
        Noting.__init__(self, name, log)
        WrappingSink.__init__(self, sink)

    def write(self, transaction: Any, batch: Batch) -> None:
        for value in batch.values:
            self.note(f"row {value}")
        super().write(transaction, batch)

    def pre_commit(self, transaction: Any) -> bytes | None:
        self.note("pre_commit")
        return super().pre_commit(transaction)


def calls(log: Path) -> list[str]:
    return log.read_text().splitlines()
