"""The public names: what a program may import, pinned, and under PyFlink's module paths."""

from __future__ import annotations

import importlib
import subprocess
import sys
from types import ModuleType

import pytest

PUBLIC: dict[str, list[str]] = {
    "holdfast": ["RestorePlan", "plan_restore"],
    "holdfast.common": [
        "ByteArraySchema",
        "CompletableFuture",
        "ConfigOption",
        "ConfigOptions",
        "Configuration",
        "DeserializationSchema",
        "Duration",
        "Encoder",
        "ExecutionConfig",
        "Instant",
        "JobClient",
        "JobExecutionResult",
        "JobID",
        "JobStatus",
        "RestartStrategies",
        "RestartStrategyConfiguration",
        "Row",
        "RowKind",
        "SerializationSchema",
        "SimpleStringSchema",
        "Time",
        "TimestampAssigner",
        "TimestampColumn",
        "TypeInformation",
        "Types",
        "WatermarkStrategy",
    ],
    "holdfast.datastream": [
        "AggregateFunction",
        "AllWindowFunction",
        "AllWindowedStream",
        "AsyncDataStream",
        "AsyncFunction",
        "AsyncRetryPredicate",
        "AsyncRetryStrategy",
        "BaseBroadcastProcessFunction",
        "BroadcastConnectedStream",
        "BroadcastProcessFunction",
        "BroadcastStream",
        "CheckpointConfig",
        "CheckpointListener",
        "CheckpointStorage",
        "Checkpointed",
        "CheckpointedFunction",
        "CheckpointingMode",
        "CloseableIterator",
        "CoFlatMapFunction",
        "CoGroupFunction",
        "CoGroupedStreams",
        "CoMapFunction",
        "CoProcessFunction",
        "ConnectedStreams",
        "CountWindow",
        "DataStream",
        "DataStreamSink",
        "EmbeddedRocksDBStateBackend",
        "ExternalizedCheckpointRetention",
        "FileSystemCheckpointStorage",
        "FilterFunction",
        "FlatJoinFunction",
        "FlatMapFunction",
        "Function",
        "FunctionInitializationContext",
        "FunctionSnapshotContext",
        "GlobalWindow",
        "HashMapStateBackend",
        "JobManagerCheckpointStorage",
        "JoinFunction",
        "JoinedStreams",
        "KeySelector",
        "KeyedBatchContext",
        "KeyedBatchFunction",
        "KeyedBroadcastProcessFunction",
        "KeyedCoProcessFunction",
        "KeyedProcessFunction",
        "KeyedStateStore",
        "KeyedStream",
        "ListCheckpointed",
        "MapFunction",
        "MemorySize",
        "MergingWindowAssigner",
        "OperatorStateStore",
        "OutputTag",
        "ParallelSourceFunction",
        "Partitioner",
        "PredefinedOptions",
        "ProcessAllWindowFunction",
        "ProcessFunction",
        "ProcessJoinFunction",
        "ProcessWindowFunction",
        "ReadLimit",
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
        "RuntimeExecutionMode",
        "SinkFunction",
        "SlotSharingGroup",
        "Source",
        "SourceFunction",
        "SourceReader",
        "StateBackend",
        "StateInitializationContext",
        "StateSnapshotContext",
        "StreamExecutionEnvironment",
        "StreamOperator",
        "TimeDomain",
        "TimeWindow",
        "TimerService",
        "Trigger",
        "TriggerResult",
        "TwoPhaseCommitSink",
        "Window",
        "WindowAssigner",
        "WindowFunction",
        "WindowedStream",
        "WrappingFunction",
        "WrappingReader",
        "WrappingSink",
    ],
    "holdfast.datastream.state": [
        "AggregatingState",
        "AggregatingStateDescriptor",
        "AppendingState",
        "BroadcastState",
        "ListState",
        "ListStateDescriptor",
        "MapState",
        "MapStateDescriptor",
        "MergingState",
        "OperatorStateStore",
        "ReadOnlyBroadcastState",
        "ReducingState",
        "ReducingStateDescriptor",
        "State",
        "StateDescriptor",
        "StateTtlConfig",
        "ValueState",
        "ValueStateDescriptor",
    ],
    "holdfast.datastream.window": [
        "ContinuousEventTimeTrigger",
        "ContinuousProcessingTimeTrigger",
        "CountEvictor",
        "CountSlidingWindowAssigner",
        "CountTrigger",
        "CountTumblingWindowAssigner",
        "CountWindow",
        "CountWindowSerializer",
        "DeltaEvictor",
        "DynamicEventTimeSessionWindows",
        "DynamicProcessingTimeSessionWindows",
        "EventTimeSessionWindows",
        "EventTimeTrigger",
        "Evictor",
        "EvictorContext",
        "GlobalWindow",
        "GlobalWindowSerializer",
        "GlobalWindows",
        "MAX_LONG_VALUE",
        "MIN_LONG_VALUE",
        "MergingWindowAssigner",
        "NeverTrigger",
        "ProcessingTimeSessionWindows",
        "ProcessingTimeTrigger",
        "PurgingTrigger",
        "SessionWindowTimeGapExtractor",
        "SlidingEventTimeWindows",
        "SlidingProcessingTimeWindows",
        "TimeEvictor",
        "TimeWindow",
        "TimeWindowSerializer",
        "TimestampedValue",
        "Trigger",
        "TriggerResult",
        "TumblingEventTimeWindows",
        "TumblingProcessingTimeWindows",
        "Window",
        "WindowAssigner",
        "WindowSerializer",
    ],
    "holdfast.datastream.connectors": [
        "BAD_RECORD_TYPE",
        "BucketAssigner",
        "ConcatFileCompactor",
        "DefaultRollingPolicy",
        "DeliveryGuarantee",
        "FileCompactStrategy",
        "FileCompactor",
        "FileOrder",
        "FileSink",
        "FileSource",
        "FileSourceBuilder",
        "IdenticalFileCompactor",
        "JdbcConnectionOptions",
        "JdbcExecutionOptions",
        "JdbcSink",
        "KafkaOffsetResetStrategy",
        "KafkaOffsetsInitializer",
        "KafkaRecordSerializationSchema",
        "KafkaRecordSerializationSchemaBuilder",
        "KafkaSink",
        "KafkaSinkBuilder",
        "KafkaSource",
        "KafkaSourceBuilder",
        "KafkaTopicPartition",
        "KafkaTopicSelector",
        "NumberSequenceSource",
        "OnCheckpointRollingPolicy",
        "OutputFileConfig",
        "RollingPolicy",
        "SequenceSource",
        "Sink",
        "Source",
        "SqlSink",
        "StreamFormat",
    ],
    "holdfast.testing": [
        "ConnectedHarness",
        "HarnessOptions",
        "HarnessSnapshot",
        "InProcessEngine",
        "KeyedConnectedHarness",
        "KeyedOperatorHarness",
        "ManualClock",
        "OperatorHarness",
        "SinkHarness",
        "SourceHarness",
        "Subtasks",
        "TestSource",
        "WindowHarness",
        "WindowOptions",
    ],
    "holdfast.common.accumulators": [
        "Accumulator",
        "AverageAccumulator",
        "DoubleCounter",
        "Histogram",
        "IntCounter",
        "LongCounter",
    ],
    "holdfast.metrics": ["Counter", "Distribution", "Meter", "Metric", "MetricGroup"],
    "holdfast.testing.contracts": [
        "CompletedStoreContract",
        "ExternalSinkContract",
        "NativeImageContract",
        "SinkContract",
        "SourceContract",
        "StateBackendContract",
    ],
    "holdfast.testing.chaos": [
        "ChaosResult",
        "Fault",
        "KillDriver",
        "KillExecutor",
        "KillService",
        "KillWorker",
        "Moments",
        "Oracle",
        "PauseDriver",
        "PauseWorker",
        "Program",
        "Service",
        "StopService",
        "Target",
        "Verdict",
        "run_chaos",
        "table_of",
    ],
}


@pytest.mark.parametrize("module", PUBLIC)
def test_the_exported_names(module: str) -> None:
    found = importlib.import_module(module)
    assert sorted(found.__all__) == PUBLIC[module]
    assert all(getattr(found, name) is not None for name in found.__all__)


def test_the_package_alone_loads_nothing() -> None:
    """Executors import it with every module that they need."""
    program = "import sys, holdfast; print(sorted(name for name in sys.modules if name.startswith('holdfast')))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "['holdfast']"


def test_harnesses_need_no_pytest() -> None:
    """Only the suites do, and whoever imports them runs them with it."""
    program = "import sys, holdfast.testing; print({'pytest', 'holdfast.testing.contracts'} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "set()"


@pytest.mark.parametrize("module", PUBLIC)
def test_nothing_else_is_public(module: str) -> None:
    """Beside its exported names a front door holds its own submodules and nothing else."""
    found = importlib.import_module(module)
    others = {
        name: value
        for name, value in vars(found).items()
        # Names with @ are pytest's own: it rewrites the assertions of packages that have a plugin for it.
        if not name.startswith(("_", "@")) and name not in found.__all__ and name != "annotations"
    }
    assert [n for n, v in others.items() if not (isinstance(v, ModuleType) and v.__name__ == f"{module}.{n}")] == []


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("common.configuration", "Configuration"),
        ("common.job_client", "JobClient"),
        ("common.job_execution_result", "JobExecutionResult"),
        ("common.job_id", "JobID"),
        ("common.job_status", "JobStatus"),
        ("common.restart_strategy", "RestartStrategies"),
        ("common.serialization", "Encoder SerializationSchema DeserializationSchema SimpleStringSchema"),
        ("common.time", "Duration Instant Time"),
        ("common.typeinfo", "Types TypeInformation"),
        ("common.types", "Row RowKind"),
        ("common.watermark_strategy", "TimestampAssigner WatermarkStrategy"),
        ("datastream.checkpoint_config", "CheckpointConfig"),
        ("datastream.checkpointing_mode", "CheckpointingMode"),
        (
            "datastream.data_stream",
            "DataStream DataStreamSink KeyedStream CloseableIterator BroadcastStream BroadcastConnectedStream "
            "ConnectedStreams WindowedStream AllWindowedStream",
        ),
        (
            "datastream.functions",
            "BroadcastProcessFunction KeyedBroadcastProcessFunction CoMapFunction CoFlatMapFunction CoProcessFunction "
            "KeyedCoProcessFunction Partitioner "
            "AggregateFunction FilterFunction FlatMapFunction Function KeySelector KeyedProcessFunction MapFunction "
            "ProcessFunction ReduceFunction RuntimeContext WindowFunction AllWindowFunction ProcessWindowFunction "
            "ProcessAllWindowFunction",
        ),
        (
            "datastream.state",
            "ValueState ListState MapState ReducingState AggregatingState BroadcastState ReadOnlyBroadcastState "
            "ValueStateDescriptor",
        ),
        ("datastream.execution_mode", "RuntimeExecutionMode"),
        ("datastream.output_tag", "OutputTag"),
        ("datastream.stream_execution_environment", "StreamExecutionEnvironment"),
        ("datastream.time_domain", "TimeDomain"),
        ("datastream.timerservice", "TimerService"),
        ("datastream.connectors.base", "DeliveryGuarantee Sink Source"),
        (
            "datastream.connectors.kafka",
            "KafkaSource KafkaSink KafkaOffsetsInitializer KafkaOffsetResetStrategy KafkaTopicPartition "
            "KafkaRecordSerializationSchema",
        ),
        ("datastream.connectors.jdbc", "JdbcSink JdbcConnectionOptions JdbcExecutionOptions"),
        ("datastream.formats.json", "JsonRowDeserializationSchema JsonRowSerializationSchema"),
        ("datastream.formats.avro", "AvroRowDeserializationSchema AvroRowSerializationSchema"),
        (
            "datastream.connectors.file_system",
            "FileSink FileSource StreamFormat RollingPolicy OutputFileConfig BucketAssigner",
        ),
        ("datastream.connectors.number_seq", "NumberSequenceSource"),
    ],
)
def test_pyflinks_module_paths(path: str, names: str) -> None:
    """A program that imports a name from where PyFlink has it gets the same object as from the front door."""
    module = importlib.import_module(f"holdfast.{path}")
    package = importlib.import_module(f"holdfast.{path.rpartition('.')[0]}")
    for name in names.split():
        assert getattr(module, name) is getattr(package, name, getattr(module, name))


@pytest.mark.parametrize(
    "package",
    [
        "types",
        "storage",
        "state",
        "state.heap",
        "state.lmdb",
        "state.rocksdb",
        "checkpoint",
        "runtime",
        "runtime.windowing",
        "graph",
        "spark",
        "connectors",
    ],
)
def test_packages_below_the_front_doors_import_nothing_by_themselves(package: str) -> None:
    found = importlib.import_module(f"holdfast.{package}")
    assert [n for n, v in vars(found).items() if not n.startswith("_") and not isinstance(v, ModuleType)] == []
