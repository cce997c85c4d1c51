"""Streams: what a program is written with. Every call adds a node to the program; nothing runs before ``execute``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, overload

from holdfast.common.watermark_strategy import WatermarkStrategy
from holdfast.connectors.collect import Collection
from holdfast.connectors.print import PrintSink
from holdfast.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from holdfast.datastream.functions import BaseBroadcastProcessFunction, KeyedProcessFunction
from holdfast.datastream.key_selection import key_by_of
from holdfast.datastream.keyed_aggregations import field_reducer, state_mapper
from holdfast.errors import ProgramError
from holdfast.graph.job_graph import stored_operator_id
from holdfast.graph.stream_graph import Connection, KeyBy, Node
from holdfast.runtime import keyed, stateless
from holdfast.runtime.endpoints import SinkFunctionOperator, SinkOperator
from holdfast.runtime.operator import Operator
from holdfast.runtime.partitioners import Broadcast, Forward, Global, Partitioner, Rebalance
from holdfast.runtime.sink import SinkFunction, TwoPhaseCommitSink
from holdfast.runtime.stream_operator import KeyedStreamOperatorHost, StreamOperator, StreamOperatorHost
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator
from holdfast.spark.for_each_batch import BatchFunction, ForEachBatchSink
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import FieldsTypeInfo, TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink:
    """The end of a stream; its settings can still be set."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def name(self, name: str) -> DataStreamSink:
        self._node.name = name
        return self

    def uid(self, uid: str) -> DataStreamSink:
        self._node.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStreamSink:
        self._node.uid_hash = stored_operator_id(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> DataStreamSink:
        self._node.parallelism = _positive(parallelism, "parallelism")
        return self

    def set_description(self, description: str) -> DataStreamSink:
        return self

    def disable_chaining(self) -> DataStreamSink:
        self._node.chainable = False
        return self


class DataStream:
    """A stream of rows."""

    def __init__(
        self, environment: StreamExecutionEnvironment, node: Node, partitioner: Partitioner | None = None
    ) -> None:
        self._environment = environment
        self._node = node
        self._partitioner = partitioner

    # -- settings of the operator that makes this stream

    def get_name(self) -> str:
        return self._node.name

    def name(self, name: str) -> DataStream:
        self._node.name = name
        return self

    def uid(self, uid: str) -> DataStream:
        """The name under which this operator's state is found again when the program has changed."""
        self._node.uid = uid
        return self

    def set_uid_hash(self, uid_hash: str) -> DataStream:
        """The id of the stored operator whose state this one takes over, if the snapshot has it: of one that had no
        uid, as messages and rehearsals name it. New checkpoints are written under the uid.
        """
        self._node.uid_hash = stored_operator_id(uid_hash)
        return self

    def set_parallelism(self, parallelism: int) -> DataStream:
        self._node.parallelism = _positive(parallelism, "parallelism")
        return self

    def set_max_parallelism(self, max_parallelism: int) -> DataStream:
        self._node.max_parallelism = _positive(max_parallelism, "maximum parallelism")
        return self

    def force_non_parallel(self) -> DataStream:
        self._node.parallelism = self._node.parallelism_limit = 1
        return self

    def start_new_chain(self) -> DataStream:
        self._node.chain_head = True
        return self

    def disable_chaining(self) -> DataStream:
        self._node.chainable = False
        return self

    def set_description(self, description: str) -> DataStream:
        return self

    def get_type(self) -> TypeInformation:
        return self._node.output_type

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    # -- transformations

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Map", stateless.MapOperator, func, output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Flat Map", stateless.FlatMapOperator, func, output_type)

    def filter(self, func: Any) -> DataStream:
        return self._add("Filter", stateless.FilterOperator, func, self._node.output_type)

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        if isinstance(func, KeyedProcessFunction):
            raise TypeError("A KeyedProcessFunction needs a keyed stream: put key_by(...) before process(...).")
        if isinstance(func, BaseBroadcastProcessFunction):
            raise TypeError(f"A {type(func).__name__} needs a broadcast stream: put connect(...) before process(...).")
        return self._add("Process", stateless.ProcessOperator, func, output_type)

    def transform(self, operator_name: str, output_type: Any, operator: StreamOperator) -> DataStream:
        """Rows through an operator of your own, which may write raw state beside the managed one."""
        _check_operator(operator)
        return self._add(operator_name, StreamOperatorHost, operator, output_type)

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        """Partition by key: a function of the row, a ``KeySelector``, or the name(s) of its column(s)."""
        return KeyedStream(self, key_by_of(self._node.output_type, key_selector, key_type))

    def union(self, *streams: DataStream) -> DataStream:
        """All rows of several streams of one type."""
        for stream in streams:
            if stream.get_type() != self.get_type():
                raise ProgramError(
                    f"union() of '{self.get_name()}' ({self.get_type().describe()}) with '{stream.get_name()}' "
                    f"({stream.get_type().describe()}): the types differ. Declare the same type_info or output_type on "
                    "both."
                )
        inputs = [stream._connection() for stream in (self, *streams)]
        node = self._environment.add_node("Union", stateless.MapOperator, _identity, self.get_type(), inputs)
        return DataStream(self._environment, node)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        node = self._environment.add_node(
            "Timestamps/Watermarks",
            TimestampsAndWatermarksOperator,
            watermark_strategy,
            self._node.output_type,
            [self._connection()],
            event_time=True,
        )
        return DataStream(self._environment, node)

    def project(self, *field_indexes: int) -> DataStream:
        """Only the given fields of tuples."""
        indexes = tuple(field_indexes)
        types = _field_types(self._node.output_type, "project()")
        return self.map(lambda row: tuple(row[i] for i in indexes), Types.TUPLE([types[i] for i in indexes])).name(
            "Projection"
        )

    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream:
        """This stream with a broadcast one beside it, for a function that sees both."""
        if not isinstance(ds, BroadcastStream):
            raise ProgramError(
                f"connect() takes a broadcast stream, stream.broadcast(descriptor); got {type(ds).__name__}. "
                "Connecting two other streams is not available yet."
            )
        return BroadcastConnectedStream(self, ds)

    # -- partitioning

    def rebalance(self) -> DataStream:
        return DataStream(self._environment, self._node, Rebalance())

    def shuffle(self) -> DataStream:
        return self.rebalance()

    def rescale(self) -> DataStream:
        return self.rebalance()

    def forward(self) -> DataStream:
        return DataStream(self._environment, self._node, Forward())

    @overload
    def broadcast(self) -> DataStream: ...

    @overload
    def broadcast(
        self, broadcast_state_descriptor: MapStateDescriptor, *other_broadcast_state_descriptors: MapStateDescriptor
    ) -> BroadcastStream: ...

    def broadcast(
        self, broadcast_state_descriptor: Any = None, *other_broadcast_state_descriptors: Any
    ) -> DataStream | BroadcastStream:
        """Every row to every subtask. With descriptors: a stream to ``connect``, whose rows change broadcast state."""
        if broadcast_state_descriptor is None:
            return DataStream(self._environment, self._node, Broadcast())
        return BroadcastStream(self._node, (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    def global_(self) -> DataStream:
        return DataStream(self._environment, self._node, Global())

    # -- the end of a stream

    def sink_to(self, sink: TwoPhaseCommitSink) -> DataStreamSink:
        if not isinstance(sink, TwoPhaseCommitSink):
            raise ProgramError(f"sink_to() takes a sink such as FileSink.parquet(path); got {type(sink).__name__}.")
        sink.bind_type(self._node.output_type)
        node = self._environment.add_node("Sink", SinkOperator, sink, self._node.output_type, [self._connection()])
        node.is_sink = True
        return DataStreamSink(node)

    def for_each_batch(self, func: BatchFunction, staging_path: str | None = None) -> DataStreamSink:
        """Hand rows to any writer of Spark's when their checkpoint is complete: ``func(data_frame, batch_id)``, in the
        driver. After a failure the same id comes again, with the same rows, and never with others.

        Until then rows are in files below ``staging_path``, or the directory of checkpoints.
        """
        return self.sink_to(ForEachBatchSink(func, staging_path)).name("For Each Batch")

    def add_sink(self, sink_func: SinkFunction | TwoPhaseCommitSink) -> DataStreamSink:
        """Hand rows to a function one by one. A sink with transactions goes to ``sink_to``."""
        if isinstance(sink_func, TwoPhaseCommitSink):
            return self.sink_to(sink_func)
        if not isinstance(sink_func, SinkFunction):
            raise ProgramError(f"add_sink() takes a SinkFunction or a sink; got {type(sink_func).__name__}.")
        connection = self._connection()
        node = self._environment.add_node("Sink", SinkFunctionOperator, sink_func, self._node.output_type, [connection])
        node.is_sink = True
        return DataStreamSink(node)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Rows are shown by the driver at the end of each epoch."""
        return self.sink_to(PrintSink(sink_identifier)).name("Print")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and give its rows: a list with ``limit``, else an iterator that can be closed."""
        collection = Collection()
        self.sink_to(collection.sink()).name("Collect")
        iterator = self._environment.collect(collection, job_execution_name)
        if limit is None:
            return iterator
        with iterator:
            return [row for row, _ in zip(iterator, range(limit), strict=False)]

    # -- inside

    def _connection(self) -> Connection:
        return Connection(self._node, self._partitioner)

    def _add(
        self, name: str, factory: type[Operator], function: Any, output_type: Any, *beside: Connection
    ) -> DataStream:
        inputs = [self._connection(), *beside]
        node = self._environment.add_node(name, factory, function, resolve(output_type), inputs)
        return DataStream(self._environment, node)


def _identity(value: Any) -> Any:
    return value


def _positive(value: int, what: str) -> int:
    if not isinstance(value, int) or not 1 <= value <= 32768:
        raise ProgramError(f"The {what} must be a whole number from 1 to 32768; got {value!r}.")
    return value


def _check_operator(operator: Any) -> None:
    if not isinstance(operator, StreamOperator):
        raise ProgramError(
            f"transform() takes a StreamOperator; got {type(operator).__name__}. Functions go to map(), flat_map() or "
            "process()."
        )


def _field_types(type_info: TypeInformation, what: str) -> list[TypeInformation]:
    if isinstance(type_info, FieldsTypeInfo):
        return list(type_info.field_types)
    raise ProgramError(
        f"{what} needs a stream of tuples or rows with a declared type; this one is {type_info.describe()}."
    )


class KeyedStream(DataStream):
    """A stream partitioned by key: functions on it keep state per key and set timers."""

    def __init__(self, origin: DataStream, key_by: KeyBy) -> None:
        super().__init__(origin._environment, origin._node)
        self._origin = origin
        self._key_by = key_by

    def get_key_type(self) -> TypeInformation:
        return self._key_by.key_type

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Map", keyed.KeyedMapOperator, func, output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Flat Map", keyed.KeyedFlatMapOperator, func, output_type)

    def filter(self, func: Any) -> DataStream:
        return self._add("Filter", keyed.KeyedFilterOperator, func, self._node.output_type)

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        if not isinstance(func, KeyedProcessFunction):
            raise TypeError(f"process() on a keyed stream takes a KeyedProcessFunction; got {type(func).__name__}.")
        return self._add("Keyed Process", keyed.KeyedProcessOperator, func, output_type)

    def transform(self, operator_name: str, output_type: Any, operator: StreamOperator) -> DataStream:
        _check_operator(operator)
        return self._add(operator_name, KeyedStreamOperatorHost, operator, output_type)

    def reduce(self, func: Any) -> DataStream:
        return self._add("Reduce", keyed.ReduceOperator, func, self._node.output_type)

    def sum(self, position_to_sum: int | str = 0) -> DataStream:
        return self._aggregate("Sum", position_to_sum)

    def min(self, position_to_min: int | str = 0) -> DataStream:
        return self._aggregate("Min", position_to_min)

    def max(self, position_to_max: int | str = 0) -> DataStream:
        return self._aggregate("Max", position_to_max)

    def min_by(self, position_to_min_by: int | str = 0) -> DataStream:
        return self._aggregate("Min By", position_to_min_by)

    def max_by(self, position_to_max_by: int | str = 0) -> DataStream:
        return self._aggregate("Max By", position_to_max_by)

    def map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], state_type: Any = None, output_type: Any = None
    ) -> DataStream:
        """``func(row, state) -> (result, new state)``; the state is None at first, and None as the new state clears
        it.
        """
        return self.flat_map(state_mapper(func, resolve(state_type), flat=False), output_type).name("Map With State")

    def flat_map_with_state(
        self, func: Callable[[Any, Any], tuple[Any, Any]], state_type: Any = None, output_type: Any = None
    ) -> DataStream:
        """``func(row, state) -> (iterable of results, new state)``."""
        return self.flat_map(state_mapper(func, resolve(state_type), flat=True), output_type).name(
            "Flat Map With State"
        )

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        return self._origin.key_by(key_selector, key_type)

    def _aggregate(self, name: str, position: int | str) -> DataStream:
        reducer = field_reducer(name, position, self._node.output_type)
        return self._add(name, keyed.ReduceOperator, reducer, self._node.output_type)

    def _connection(self) -> Connection:
        return Connection(self._node, key_by=self._key_by)

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ProgramError(
            "Cannot override partitioning of a keyed stream, nor set the name, uid or parallelism of a key_by: set "
            "them on the operator behind it."
        )

    rebalance = shuffle = rescale = forward = broadcast = global_ = _refuse
    name = uid = set_uid_hash = set_parallelism = set_max_parallelism = _refuse
    force_non_parallel = start_new_chain = disable_chaining = set_description = _refuse


class CloseableIterator:
    """Rows of a running job, as they are published. Closing it cancels the job."""

    def __init__(self, rows: Iterator[Any], close: Callable[[], None]) -> None:
        self._rows = rows
        self._close = close

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    def __next__(self) -> Any:
        return next(self._rows)

    def close(self) -> None:
        self._close()

    def __enter__(self) -> CloseableIterator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
