"""Streams, functions and the execution environment, with PyFlink's names."""

from holdfast.datastream.broadcast_stream import BroadcastConnectedStream, BroadcastStream
from holdfast.datastream.checkpoint_config import CheckpointConfig
from holdfast.datastream.checkpointing_mode import CheckpointingMode
from holdfast.datastream.data_stream import CloseableIterator, DataStream, DataStreamSink, KeyedStream
from holdfast.datastream.execution_mode import RuntimeExecutionMode
from holdfast.datastream.externalized_checkpoint_retention import ExternalizedCheckpointRetention
from holdfast.datastream.functions import (
    AggregateFunction,
    BaseBroadcastProcessFunction,
    BroadcastProcessFunction,
    CheckpointedFunction,
    CheckpointListener,
    FilterFunction,
    FlatMapFunction,
    Function,
    FunctionInitializationContext,
    FunctionSnapshotContext,
    KeyedBroadcastProcessFunction,
    KeyedProcessFunction,
    KeySelector,
    MapFunction,
    ProcessFunction,
    ReduceFunction,
    RuntimeContext,
)
from holdfast.datastream.stream_execution_environment import StreamExecutionEnvironment
from holdfast.datastream.time_domain import TimeDomain
from holdfast.datastream.timerservice import TimerService
from holdfast.runtime.sink import TwoPhaseCommitSink
from holdfast.runtime.source import Source, SourceReader

__all__ = [
    "AggregateFunction",
    "BaseBroadcastProcessFunction",
    "BroadcastConnectedStream",
    "BroadcastProcessFunction",
    "BroadcastStream",
    "CheckpointConfig",
    "CheckpointListener",
    "CheckpointedFunction",
    "CheckpointingMode",
    "CloseableIterator",
    "DataStream",
    "DataStreamSink",
    "ExternalizedCheckpointRetention",
    "FilterFunction",
    "FlatMapFunction",
    "Function",
    "FunctionInitializationContext",
    "FunctionSnapshotContext",
    "KeySelector",
    "KeyedBroadcastProcessFunction",
    "KeyedProcessFunction",
    "KeyedStream",
    "MapFunction",
    "ProcessFunction",
    "ReduceFunction",
    "RuntimeContext",
    "RuntimeExecutionMode",
    "Source",
    "SourceReader",
    "StreamExecutionEnvironment",
    "TimeDomain",
    "TimerService",
    "TwoPhaseCommitSink",
]
