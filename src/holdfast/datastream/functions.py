"""The functions that users write: PyFlink's classes, and Flink's contracts for state that belongs to a subtask."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, TypeAlias, TypeVar

import pyarrow as pa

from holdfast.coverage.answers import answer_missing_names as _answer_missing_names
from holdfast.datastream.async_retry_strategies import AsyncRetryPredicate, AsyncRetryStrategy
from holdfast.datastream.window_functions import (
    AllWindowFunction,
    CoGroupFunction,
    FlatJoinFunction,
    JoinFunction,
    ProcessAllWindowFunction,
    ProcessJoinFunction,
    ProcessWindowFunction,
    WindowFunction,
)
from holdfast.errors import CallTimeoutError
from holdfast.runtime.broadcast import (
    BroadcastContext,
    BroadcastTimes,
    KeyedBroadcastContext,
    KeyedReadOnlyBroadcastContext,
    ReadOnlyBroadcastContext,
)
from holdfast.runtime.context import (
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedStateStore,
    OperatorStateStore,
    RuntimeContext,
    StateInitializationContext,
    StateSnapshotContext,
)
from holdfast.runtime.contracts import (
    Checkpointed,
    CheckpointedFunction,
    CheckpointListener,
    Function,
    ListCheckpointed,
    WrappingFunction,
)
from holdfast.runtime.keyed import KeyedProcessContext
from holdfast.runtime.keyed_batch import KeyedBatchContext
from holdfast.runtime.sink import SinkFunction
from holdfast.runtime.source import ParallelSourceFunction, SourceFunction
from holdfast.runtime.stateless import ProcessContext
from holdfast.runtime.stream_operator import StreamOperator
from holdfast.runtime.timer_service import TimerService

__all__ = [
    "AggregateFunction",
    "AllWindowFunction",
    "AsyncFunction",
    "AsyncRetryPredicate",
    "AsyncRetryStrategy",
    "BaseBroadcastProcessFunction",
    "BroadcastProcessFunction",
    "CheckpointListener",
    "Checkpointed",
    "CheckpointedFunction",
    "CoFlatMapFunction",
    "CoGroupFunction",
    "CoMapFunction",
    "CoProcessFunction",
    "FilterFunction",
    "FlatJoinFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "JoinFunction",
    "KeySelector",
    "KeyedBatchContext",
    "KeyedBatchFunction",
    "KeyedBroadcastProcessFunction",
    "KeyedCoProcessFunction",
    "KeyedProcessFunction",
    "KeyedStateStore",
    "ListCheckpointed",
    "MapFunction",
    "OperatorStateStore",
    "ParallelSourceFunction",
    "Partitioner",
    "ProcessAllWindowFunction",
    "ProcessFunction",
    "ProcessJoinFunction",
    "ProcessWindowFunction",
    "ReduceFunction",
    "RichAggregateFunction",
    "RichFilterFunction",
    "RichFlatMapFunction",
    "RichFunction",
    "RichMapFunction",
    "RichParallelSourceFunction",
    "RichReduceFunction",
    "RichSinkFunction",
    "RichSourceFunction",
    "RuntimeContext",
    "SinkFunction",
    "SourceFunction",
    "StateInitializationContext",
    "StateSnapshotContext",
    "StreamOperator",
    "TimerService",
    "WindowFunction",
    "WrappingFunction",
]

_answer_missing_names(__name__)


IN = TypeVar("IN")
OUT = TypeVar("OUT")


class MapFunction(Function):
    @abstractmethod
    def map(self, value: Any) -> Any:
        """One row for one row."""


class FlatMapFunction(Function):
    @abstractmethod
    def flat_map(self, value: Any) -> Iterable[Any] | None:
        """Any number of rows for one row, by ``yield`` or as an iterable."""


class FilterFunction(Function):
    @abstractmethod
    def filter(self, value: Any) -> bool:
        """True keeps the row."""


class ReduceFunction(Function):
    @abstractmethod
    def reduce(self, value1: Any, value2: Any) -> Any:
        """Combine what was kept with the new value, into the same type."""


class AggregateFunction(Function):
    """Combines values into an accumulator of another type."""

    @abstractmethod
    def create_accumulator(self) -> Any: ...

    @abstractmethod
    def add(self, value: Any, accumulator: Any) -> Any: ...

    @abstractmethod
    def get_result(self, accumulator: Any) -> Any: ...

    @abstractmethod
    def merge(self, acc_a: Any, acc_b: Any) -> Any: ...


class KeySelector(Function):
    @abstractmethod
    def get_key(self, value: Any) -> Any:
        """The key of a row: the same for the same row, never None."""


class Partitioner(Function):
    @abstractmethod
    def partition(self, key: Any, num_partitions: int) -> int:
        """The subtask that a row of this key goes to, from 0 to ``num_partitions`` - 1."""


class ProcessFunction(Function):
    Context: TypeAlias = ProcessContext

    @abstractmethod
    def process_element(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None:
        """Any number of rows for one row."""


class KeyedProcessFunction(Function):
    """Sees rows with their key, keeps keyed state, and sets timers for the current key."""

    Context: TypeAlias = KeyedProcessContext
    OnTimerContext: TypeAlias = KeyedProcessContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None: ...

    def on_timer(self, timestamp: int, ctx: KeyedProcessContext) -> Iterable[Any] | None:
        """A timer of the current key is due. Timers of one operator fire in the order of their time."""
        return None


class AsyncFunction(Function, Generic[IN, OUT]):
    """Asks a service or a database for each row, and does not wait for one answer before it asks the next.
    ``AsyncDataStream`` puts it behind a stream.

    ``async_invoke`` and ``timeout`` are called in the asyncio loop of the subtask, which runs in a thread of its own;
    all other methods in the thread of the task, when no call is under way. Nothing may block the loop. There is no
    keyed state. A call whose epoch failed is made again with its row, so what it does elsewhere may happen twice.
    """

    @abstractmethod
    async def async_invoke(self, value: IN) -> list[OUT]:
        """The rows for a row: ``[row]`` for one, ``[]`` for none. An error fails the job, unless the retry strategy
        says otherwise.
        """

    def timeout(self, value: IN) -> list[OUT]:
        """The rows for a row whose call took too long, all its attempts together. The call is cancelled."""
        raise CallTimeoutError("async_invoke() gave no result within the timeout, and timeout() is not overridden")


class KeyedBatchFunction(Function):
    """Sees the rows of a keyed stream as Arrow columns, all rows of an epoch at once, and their state in bulk
    (``ValueState.get_many`` and ``put_many``). Holdfast's own: PyFlink has nothing like it.
    """

    @abstractmethod
    def process_batch(self, keys: pa.Array, batch: pa.RecordBatch, ctx: KeyedBatchContext) -> Any:
        """``keys[i]`` is the key of row i of ``batch``; rows of one key are in the order in which they came.

        Gives a ``pyarrow.RecordBatch`` or ``Table`` with the columns of the output type, any number of them, or None.
        On a stream with event times, a pair of one and the times of its rows, in milliseconds, gives those times.
        """


class CoMapFunction(Function):
    """Maps two connected streams to one. A result that is None is left out."""

    @abstractmethod
    def map1(self, value: Any) -> Any:
        """One row, or None, for a row of the first stream."""

    @abstractmethod
    def map2(self, value: Any) -> Any:
        """One row, or None, for a row of the second stream."""


class CoFlatMapFunction(Function):
    @abstractmethod
    def flat_map1(self, value: Any) -> Iterable[Any] | None:
        """Any number of rows for a row of the first stream."""

    @abstractmethod
    def flat_map2(self, value: Any) -> Iterable[Any] | None:
        """Any number of rows for a row of the second stream."""


class CoProcessFunction(Function):
    """Sees the rows of two connected streams. On keyed ones it has keyed state too."""

    Context: TypeAlias = ProcessContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None:
        """Any number of rows for a row of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: ProcessContext) -> Iterable[Any] | None:
        """Any number of rows for a row of the second stream."""


class KeyedCoProcessFunction(Function):
    """Sees the rows of two connected keyed streams, keeps one state per key for both, and sets timers for the current
    key.
    """

    Context: TypeAlias = KeyedProcessContext
    OnTimerContext: TypeAlias = KeyedProcessContext

    @abstractmethod
    def process_element1(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None:
        """Any number of rows for a row of the first stream."""

    @abstractmethod
    def process_element2(self, value: Any, ctx: KeyedProcessContext) -> Iterable[Any] | None:
        """Any number of rows for a row of the second stream."""

    def on_timer(self, timestamp: int, ctx: KeyedProcessContext) -> Iterable[Any] | None:
        """A timer of the current key is due: event time of both streams has come to it, or the clock has."""
        return None


class BaseBroadcastProcessFunction(Function):
    """Sees the rows of a stream and the elements of a broadcast stream that it is connected to.

    Every subtask is given every broadcast element once, all in the same order, and those of an epoch before its rows.
    Only broadcast elements may change broadcast state, and must do so by their content alone: not by the subtask, the
    clock, a random number or a field that rows have changed. Otherwise the copies of the subtasks come to differ, and
    nothing notices.
    """

    BaseContext: TypeAlias = BroadcastTimes
    Context: TypeAlias = BroadcastContext
    ReadOnlyContext: TypeAlias = ReadOnlyBroadcastContext

    @abstractmethod
    def process_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """Any number of rows for one row; broadcast state can be read."""

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: Any) -> Iterable[Any] | None:
        """Any number of rows for one broadcast element, from every subtask; broadcast state can be changed."""


class BroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Sees the rows of a stream without keys, and the elements of a broadcast stream."""

    @abstractmethod
    def process_element(self, value: Any, ctx: ReadOnlyBroadcastContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: BroadcastContext) -> Iterable[Any] | None: ...


class KeyedBroadcastProcessFunction(BaseBroadcastProcessFunction):
    """Sees the rows of a keyed stream, and the elements of a broadcast stream: rows have keyed state and timers,
    broadcast elements reach it by ``apply_to_keyed_state``.
    """

    Context: TypeAlias = KeyedBroadcastContext
    ReadOnlyContext: TypeAlias = KeyedReadOnlyBroadcastContext
    OnTimerContext: TypeAlias = KeyedReadOnlyBroadcastContext

    @abstractmethod
    def process_element(self, value: Any, ctx: KeyedReadOnlyBroadcastContext) -> Iterable[Any] | None: ...

    @abstractmethod
    def process_broadcast_element(self, value: Any, ctx: KeyedBroadcastContext) -> Iterable[Any] | None: ...

    def on_timer(self, timestamp: int, ctx: KeyedReadOnlyBroadcastContext) -> Iterable[Any] | None:
        """A timer of the current key is due. Broadcast state can be read."""
        return None


# Flink's names. Every function here has a runtime context and a life cycle, so they add nothing.


class RichFunction(Function):
    """A function with ``open``, ``close`` and ``get_runtime_context``."""


class RichMapFunction(MapFunction, RichFunction):
    """A MapFunction."""


class RichFlatMapFunction(FlatMapFunction, RichFunction):
    """A FlatMapFunction."""


class RichFilterFunction(FilterFunction, RichFunction):
    """A FilterFunction."""


class RichReduceFunction(ReduceFunction, RichFunction):
    """A ReduceFunction."""


class RichAggregateFunction(AggregateFunction, RichFunction):
    """An AggregateFunction."""


class RichSourceFunction(SourceFunction, RichFunction):
    """A SourceFunction."""


class RichParallelSourceFunction(ParallelSourceFunction, RichFunction):
    """A ParallelSourceFunction."""


class RichSinkFunction(SinkFunction, RichFunction):
    """A SinkFunction."""
