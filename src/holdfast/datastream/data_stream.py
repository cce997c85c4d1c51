"""Streams: what a program is written with. Every call adds a node to the program; nothing runs before ``execute``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, overload

from holdfast.common.execution_config import ExecutionConfig
from holdfast.common.watermark_strategy import WatermarkStrategy
from holdfast.coverage.answers import answer_missing_names, refusal
from holdfast.datastream.aligned import align
from holdfast.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from holdfast.datastream.closeable_iterator import CloseableIterator
from holdfast.datastream.column_functions import aggregation_of, check_columns, check_event_times, check_times
from holdfast.datastream.connected_streams import ConnectedStreams
from holdfast.datastream.functions import (
    BaseBroadcastProcessFunction,
    CoProcessFunction,
    KeyedBatchFunction,
    KeyedCoProcessFunction,
    KeyedProcessFunction,
)
from holdfast.datastream.joined_streams import CoGroupedStreams, IntervalJoin, JoinedStreams
from holdfast.datastream.key_selection import custom_partitioner, field_types, key_by_of
from holdfast.datastream.key_versions import KeyVersions
from holdfast.datastream.keyed_aggregations import ShortForms
from holdfast.datastream.operator_settings import StreamSettings
from holdfast.datastream.stream_ends import DataStreamSink, StreamEnds
from holdfast.datastream.windowed_stream import AllWindowedStream, WindowedStream, count_windows
from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import Connection, KeyBy, Node
from holdfast.runtime import keyed, stateless
from holdfast.runtime.aggregate_operator import AggregateOperator
from holdfast.runtime.aggregates import Aggregate
from holdfast.runtime.keyed_batch import KeyedBatchOperator
from holdfast.runtime.local_aggregation import Combination
from holdfast.runtime.output_tag import OutputTag
from holdfast.runtime.partitioners import Broadcast, Forward, Global, Partitioner, Rebalance, Rescale, Shuffle
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.running_aggregates import reduce_operator
from holdfast.runtime.stream_operator import StreamOperator, StreamOperatorHost, keyed_stream_operator_host
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator
from holdfast.runtime.windowing.assigners import WindowAssigner
from holdfast.state.descriptors import MapStateDescriptor
from holdfast.types.resolve import resolve
from holdfast.types.typeinfo import TypeInformation, Types

if TYPE_CHECKING:
    from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
    from holdfast.spark.stream_data_frame import StreamDataFrame

__all__ = [
    "AllWindowedStream",
    "BroadcastConnectedStream",
    "BroadcastStream",
    "CloseableIterator",
    "ConnectedStreams",
    "DataStream",
    "DataStreamSink",
    "KeyedStream",
    "WindowedStream",
]

answer_missing_names(__name__)


class DataStream(StreamSettings, StreamEnds):
    """A stream of rows."""

    def __init__(
        self,
        environment: StreamExecutionEnvironment,
        node: Node,
        partitioner: Partitioner | None = None,
        tag: OutputTag | None = None,
    ) -> None:
        self._environment = environment
        self._node = node
        self._partitioner = partitioner
        self._tag = tag

    def get_name(self) -> str:
        return self._node.name

    def get_type(self) -> TypeInformation:
        return self._connection().type_info

    def get_execution_environment(self) -> StreamExecutionEnvironment:
        return self._environment

    def get_execution_config(self) -> ExecutionConfig:
        return self._environment.get_config()

    # -- transformations

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Map", stateless.MapOperator, func, output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Flat Map", stateless.FlatMapOperator, func, output_type)

    def filter(self, func: Any) -> DataStream:
        return self._add("Filter", stateless.FilterOperator, func, self.get_type())

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        if isinstance(func, KeyedProcessFunction):
            raise TypeError("A KeyedProcessFunction needs a keyed stream: put key_by(...) before process(...).")
        if isinstance(func, (BaseBroadcastProcessFunction, CoProcessFunction, KeyedCoProcessFunction)):
            raise TypeError(f"A {type(func).__name__} needs a second stream: put connect(...) before process(...).")
        return self._add("Process", stateless.ProcessOperator, func, output_type)

    def transform(self, operator_name: str, output_type: Any, operator: StreamOperator) -> DataStream:
        """Rows through an operator of your own, which may write raw state beside the managed one."""
        _check_operator(operator)
        return self._add(operator_name, StreamOperatorHost, operator, output_type)

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        """Partition by key: a function of the row, a ``KeySelector``, or the name(s) of its column(s)."""
        return KeyedStream(self, key_by_of(self.get_type(), key_selector, key_type))

    def union(self, *streams: DataStream) -> DataStream:
        """All rows of several streams of one type."""
        for stream in streams:
            if not isinstance(stream, DataStream):
                raise ProgramError(f"union() takes streams; got {stream!r}.")
            if stream.get_type() != self.get_type():
                raise ProgramError(
                    f"union() of '{self.get_name()}' ({self.get_type().describe()}) with '{stream.get_name()}' "
                    f"({stream.get_type().describe()}): the types differ. Declare the same type_info or output_type on "
                    "both."
                )
        inputs = [stream._unkeyed()._connection() for stream in (self, *streams)]
        node = self._environment.add_node("Union", stateless.MapOperator, _identity, self.get_type(), inputs)
        node.auxiliary = True
        node.is_union = True
        return DataStream(self._environment, node)

    def assign_timestamps_and_watermarks(self, watermark_strategy: WatermarkStrategy) -> DataStream:
        if watermark_strategy.timestamp_column is not None:
            check_times(self.get_type(), watermark_strategy.timestamp_column)
        node = self._environment.add_node(
            "Timestamps/Watermarks",
            TimestampsAndWatermarksOperator,
            watermark_strategy,
            self.get_type(),
            [self._connection()],
            event_time=True,
        )
        if watermark_strategy.alignment is not None and watermark_strategy.bound_ms is not None:
            align(node, watermark_strategy.alignment)
        return DataStream(self._environment, node)

    def project(self, *field_indexes: int) -> DataStream:
        """Only the given fields of tuples."""
        indexes = tuple(field_indexes)
        types = field_types(self.get_type(), "project()")
        wrong = [i for i in indexes if not isinstance(i, int) or not 0 <= i < len(types)]
        if wrong or not indexes:
            raise ProgramError(
                f"project() takes positions of fields, from 0 to {len(types) - 1}; got {list(field_indexes)!r}."
            )
        return self.map(lambda row: tuple(row[i] for i in indexes), Types.TUPLE([types[i] for i in indexes])).name(
            "Projection"
        )

    @overload
    def connect(self, ds: DataStream) -> ConnectedStreams: ...

    @overload
    def connect(self, ds: BroadcastStream) -> BroadcastConnectedStream: ...

    def connect(self, ds: DataStream | BroadcastStream) -> ConnectedStreams | BroadcastConnectedStream:
        """This stream and another one, or a broadcast one, for a function that sees both."""
        if isinstance(ds, BroadcastStream):
            return BroadcastConnectedStream(self, ds)
        if not isinstance(ds, DataStream):
            raise ProgramError(
                f"connect() takes a stream, or a broadcast stream, stream.broadcast(descriptor); got {ds!r}."
            )
        return ConnectedStreams(self, ds)

    def get_side_output(self, output_tag: OutputTag) -> DataStream:
        """The rows that the function before this gives to ``output_tag``, by ``yield output_tag, row``."""
        if not isinstance(output_tag, OutputTag):
            raise ProgramError(f"get_side_output() takes an OutputTag; got {output_tag!r}.")
        node = self._operator().giving(output_tag)
        node.request_side_output(output_tag)
        return DataStream(self._environment, node, tag=output_tag)

    def window_all(self, window_assigner: WindowAssigner[Any, Any]) -> AllWindowedStream:
        """Windows of all rows together: one subtask has them all."""
        return AllWindowedStream(self.key_by(_one_key, Types.BYTE()), window_assigner)

    def count_window_all(self, size: int, slide: int = 0) -> AllWindowedStream:
        """Windows of ``size`` rows, one after the other, or one for every ``slide`` rows."""
        return self.window_all(count_windows(size, slide))

    def join(self, other_stream: DataStream) -> JoinedStreams:
        """Pairs of rows with one key in one window: ``a.join(b).where(key).equal_to(key).window(w).apply(f)``."""
        return JoinedStreams(self, other_stream)

    def co_group(self, other_stream: DataStream) -> CoGroupedStreams:
        """The rows of both streams with one key in one window, in the same shape as ``join``."""
        return CoGroupedStreams(self, other_stream)

    # -- partitioning

    def rebalance(self) -> DataStream:
        return self._partitioned(Rebalance())

    def shuffle(self) -> DataStream:
        """Each row to any subtask, by chance; a task that is run again sends the same rows the same way."""
        return self._partitioned(Shuffle())

    def rescale(self) -> DataStream:
        """Like ``rebalance``, but each subtask sends to few others, and no two of them to all."""
        return self._partitioned(Rescale())

    def partition_custom(self, partitioner: Any, key_selector: Any) -> DataStream:
        """Each row to the subtask that ``partitioner`` says: a ``Partitioner``, or a function of (key, subtasks)."""
        return self._partitioned(custom_partitioner(partitioner, key_selector))

    def forward(self) -> DataStream:
        return self._partitioned(Forward())

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
            return self._partitioned(Broadcast())
        return BroadcastStream(self._connection(), (broadcast_state_descriptor, *other_broadcast_state_descriptors))

    def global_(self) -> DataStream:
        return self._partitioned(Global())

    def cache(self) -> DataStream:
        raise ProgramError(refusal("DataStream.cache"))

    def to_data_frame(self, event_time_column: str | None = None) -> StreamDataFrame:
        """The rows for transformations of Spark's that take a row at a time; ``env.from_data_frame`` makes a stream of
        what comes of them. ``event_time_column`` is as that of ``env.create_temporary_view``.
        """
        return self._environment.data_frame_of(self, event_time_column)

    # -- inside

    def _connection(self) -> Connection:
        return Connection(self._node, self._partitioner, tag=self._tag)

    def _unkeyed(self) -> DataStream:
        return self

    def _partitioned(self, partitioner: Partitioner) -> DataStream:
        return DataStream(self._environment, self._node, partitioner, self._tag)

    def _operator(self) -> Node:
        """The operator that makes this stream, to set something on it."""
        if self._tag is not None:
            raise ProgramError(
                f"The side output '{self._tag.tag_id}' of '{self._node.name}' is no operator of its own: set names, "
                "uids, parallelism and chaining on the operator that makes it, or on one behind it."
            )
        return self._node

    def _add(
        self, name: str, factory: OperatorFactory, function: Any, output_type: Any, *beside: Connection
    ) -> DataStream:
        return self._add_node(name, factory, function, output_type, [self._connection(), *beside])

    def _add_stateless(self, name: str, factory: OperatorFactory, function: Any, output_type: Any) -> DataStream:
        """An operator without keyed state: a key only says where rows go."""
        connection = replace(self._connection(), keyed_state=False)
        return self._add_node(name, factory, function, output_type, [connection])

    def _add_node(
        self, name: str, factory: OperatorFactory, function: Any, output_type: Any, inputs: list[Connection]
    ) -> DataStream:
        node = self._environment.add_node(name, factory, function, resolve(output_type), inputs)
        return DataStream(self._environment, node)


def _identity(value: Any) -> Any:
    return value


def _one_key(value: Any) -> int:
    return 0


def _check_operator(operator: Any) -> None:
    if not isinstance(operator, StreamOperator):
        raise ProgramError(
            f"transform() takes a StreamOperator; got {type(operator).__name__}. Functions go to map(), flat_map() or "
            "process()."
        )


class KeyedStream(DataStream, KeyVersions, ShortForms):
    """A stream partitioned by key: functions on it keep state per key and set timers."""

    def __init__(self, origin: DataStream, key_by: KeyBy) -> None:
        super().__init__(origin._environment, origin._node, tag=origin._tag)
        self._origin = origin
        self._key_by = key_by

    def get_key_type(self) -> TypeInformation:
        return self._key_by.key_type

    def map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Map", keyed.KeyedMapOperator, func, output_type)

    def flat_map(self, func: Any, output_type: Any = None) -> DataStream:
        return self._add("Flat Map", keyed.KeyedFlatMapOperator, func, output_type)

    def filter(self, func: Any) -> DataStream:
        return self._add("Filter", keyed.KeyedFilterOperator, func, self.get_type())

    def process(self, func: Any, output_type: Any = None) -> DataStream:
        if isinstance(func, KeyedBatchFunction):
            check_columns(self.get_type(), self.get_key_type(), resolve(output_type))
            return self._add("Keyed Batch", KeyedBatchOperator, func, output_type)
        if not isinstance(func, KeyedProcessFunction):
            raise TypeError(
                f"process() on a keyed stream takes a KeyedProcessFunction or a KeyedBatchFunction; got "
                f"{type(func).__name__}."
            )
        return self._add("Keyed Process", keyed.KeyedProcessOperator, func, output_type)

    def transform(self, operator_name: str, output_type: Any, operator: StreamOperator) -> DataStream:
        _check_operator(operator)
        return self._add(operator_name, keyed_stream_operator_host, operator, output_type)

    def reduce(self, func: Any) -> DataStream:
        factory = reduce_operator(func, self.get_type(), self.get_key_type(), self._environment.row_path)
        return self._add("Reduce", factory, func, self.get_type())

    def aggregate(self, **aggregates: Aggregate) -> DataStream:
        """Known aggregates of each key, kept and merged by column: ``aggregate(orders=Count(), revenue=Sum("price"))``.

        Gives, once in an epoch, one row for each key that had rows in it: the columns of the key, and the aggregates of
        all rows of the key so far. In batch mode, one row for each key at the end. Rows are combined before the
        exchange, those of a DataFrame by Spark. The key must be one of columns.
        """
        aggregation = aggregation_of(self.get_type(), self._key_by, aggregates)
        check_event_times(aggregation, self._node.event_time)
        combined = replace(self._connection(), combine=Combination(aggregation))
        return self._add_node("Aggregate", AggregateOperator, aggregation, aggregation.output_type(), [combined])

    def key_by(self, key_selector: Any, key_type: Any = None) -> KeyedStream:
        return self._origin.key_by(key_selector, key_type)

    def window(self, window_assigner: WindowAssigner[Any, Any]) -> WindowedStream:
        """The rows of each key in windows."""
        return WindowedStream(self, window_assigner)

    def count_window(self, size: int, slide: int = 0) -> WindowedStream:
        """Windows of ``size`` rows of a key, one after the other, or one for every ``slide`` rows."""
        return self.window(count_windows(size, slide))

    def interval_join(self, other_stream: KeyedStream) -> IntervalJoin:
        """Pairs of rows of a key with times close to each other: ``.between(lower, upper).process(f)``."""
        if not isinstance(other_stream, KeyedStream):
            raise ProgramError(f"interval_join() takes a keyed stream; '{other_stream.get_name()}' has no key_by().")
        return IntervalJoin(self, other_stream)

    def _connection(self) -> Connection:
        return Connection(self._node, key_by=self._key_by, tag=self._tag)

    def _keyed_by(self, key_by: KeyBy) -> KeyedStream:
        return KeyedStream(self._origin, key_by)

    def _unkeyed(self) -> DataStream:
        return self._origin

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise ProgramError(
            "Cannot override partitioning of a keyed stream, nor set the name, uid or parallelism of a key_by: set "
            "them on the operator behind it."
        )

    rebalance = shuffle = rescale = forward = broadcast = global_ = partition_custom = _refuse
    name = uid = set_uid_hash = set_parallelism = set_max_parallelism = _refuse
    force_non_parallel = start_new_chain = disable_chaining = set_description = get_side_output = _refuse
    slot_sharing_group = set_buffer_timeout = cache = _refuse
