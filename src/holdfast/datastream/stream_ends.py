"""Where streams end: sinks, Spark's writers, the terminal, the program itself."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from holdfast.connectors.collect import Collection
from holdfast.connectors.print import PrintSink
from holdfast.datastream.operator_settings import OperatorSettings
from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import Connection, Node
from holdfast.runtime.endpoints import SinkFunctionOperator, SinkOperator
from holdfast.runtime.plan import OperatorFactory
from holdfast.runtime.sink import SinkFunction, TwoPhaseCommitSink
from holdfast.spark.for_each_batch import BatchFunction, ForEachBatchSink
from holdfast.types.typeinfo import TypeInformation

if TYPE_CHECKING:
    from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment


class DataStreamSink(OperatorSettings):
    """The end of a stream; its settings can still be set."""

    def __init__(self, node: Node) -> None:
        self._node = node

    def _operator(self) -> Node:
        return self._node


class StreamEnds(ABC):
    """The ends of any stream."""

    _environment: StreamExecutionEnvironment

    @abstractmethod
    def get_type(self) -> TypeInformation: ...

    @abstractmethod
    def _connection(self) -> Connection: ...

    def sink_to(self, sink: TwoPhaseCommitSink) -> DataStreamSink:
        if not isinstance(sink, TwoPhaseCommitSink):
            raise ProgramError(f"sink_to() takes a sink such as FileSink.parquet(path); got {type(sink).__name__}.")
        sink.bind_type(self.get_type())
        return self._end(SinkOperator, sink)

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
        return self._end(SinkFunctionOperator, sink_func)

    def print(self, sink_identifier: str | None = None) -> DataStreamSink:
        """Rows are shown by the driver at the end of each epoch."""
        return self.sink_to(PrintSink(sink_identifier)).name("Print")

    def execute_and_collect(self, job_execution_name: str | None = None, limit: int | None = None) -> Any:
        """Run the program and give its rows: a list with ``limit``, else an iterator that can be closed."""
        collection = Collection()
        collector = self.sink_to(collection.sink()).name("Collect")._operator()
        collector.auxiliary = True
        self._collect_in_order(collector)
        iterator = self._environment.collect(collection, job_execution_name)
        if limit is None:
            return iterator
        with iterator:
            return [row for row, _ in zip(iterator, range(limit), strict=False)]

    @staticmethod
    def _collect_in_order(sink: Node) -> None:
        """As many subtasks as give the rows, each collecting those of one; one where rows are sent elsewhere. So the
        rows of a subtask stay in their order.
        """
        (connection,) = sink.inputs
        moves = connection.partitioner is not None or connection.key_by is not None
        sink.parallelism = 1 if moves else connection.source.parallelism
        sink.parallelism_limit = None if moves else connection.source.parallelism_limit

    def _end(self, factory: OperatorFactory, body: Any) -> DataStreamSink:
        node = self._environment.add_node("Sink", factory, body, self.get_type(), [self._connection()])
        node.is_sink = True
        return DataStreamSink(node)
