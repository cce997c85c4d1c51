"""PyFlink's names that are accepted without effect, refused, only for Java, or here with other parameters, and why.

A key is a class and a name in it, a class or function, a module, or ``*.name`` for a name in any class. A note
completes the sentence "... is not available: ...", or "... has no effect: ...".
"""

from __future__ import annotations

from typing import Final

_UNALIGNED = "nothing is between tasks when an epoch ends, so an aligned checkpoint never waits: both kinds are one"
_SLOTS = "Spark decides which executor a task runs on, and subtasks of one number share a task of each level"
_TYPE_SERIALIZERS = "a type's serializer is chosen by its declaration alone"
_OBJECTS = "rows pass from function to function as they are; between tasks they are copied"
_CLOSURES = "a function is sent with what it refers to, and no more"
_ROWS_TRAVEL = "rows travel at the end of an epoch, or when there are enough of them"

#: Name -> why it changes nothing.
ACCEPTED: Final[dict[str, str]] = {
    "StreamExecutionEnvironment.set_buffer_timeout": _ROWS_TRAVEL,
    "StreamExecutionEnvironment.get_buffer_timeout": "it gives what was set or configured, 100 at first",
    "StreamExecutionEnvironment.enable_changelog_state_backend": (
        "every backend here knows what changed since a checkpoint, and stores that alone"
    ),
    "StreamExecutionEnvironment.is_changelog_state_backend_enabled": "it gives what was set",
    "StreamExecutionEnvironment.register_slot_sharing_group": _SLOTS,
    "StreamExecutionEnvironment.set_default_local_parallelism": (
        "without a parallelism there are as many subtasks as Spark has cores; use set_parallelism(n)"
    ),
    "StreamExecutionEnvironment.get_default_local_parallelism": "it gives what was set, the host's processors at first",
    "CheckpointConfig.enable_unaligned_checkpoints": _UNALIGNED,
    "CheckpointConfig.disable_unaligned_checkpoints": _UNALIGNED,
    "CheckpointConfig.set_force_unaligned_checkpoints": _UNALIGNED,
    "CheckpointConfig.set_aligned_checkpoint_timeout": _UNALIGNED,
    "CheckpointConfig.set_alignment_timeout": _UNALIGNED,
    **{
        f"ExecutionConfig.{switch}_{name}": reason
        for switch in ("enable", "disable")
        for name, reason in {
            "object_reuse": _OBJECTS,
            "closure_cleaner": _CLOSURES,
            "force_kryo": _TYPE_SERIALIZERS,
            "force_avro": _TYPE_SERIALIZERS,
        }.items()
    },
    "ExecutionConfig.set_latency_tracking_interval": (
        "there are no latency markers; how long epochs take is measured always"
    ),
    "ExecutionConfig.set_task_cancellation_interval": "Spark ends the tasks of a cancelled epoch",
    "ExecutionConfig.set_task_cancellation_timeout": "see `spark.task.reaper.killTimeout`",
    "ExecutionConfig.set_use_snapshot_compression": (
        "snapshots are compressed anyway; RocksDB's own files as RocksDB has them"
    ),
    "DataStream.set_buffer_timeout": _ROWS_TRAVEL,
    "DataStream.slot_sharing_group": _SLOTS,
    "DataStream.set_description": "a description is shown nowhere; use name()",
    "DataStreamSink.slot_sharing_group": _SLOTS,
    "DataStreamSink.set_description": "a description is shown nowhere; use name()",
    "EmbeddedRocksDBStateBackend.set_number_of_transfer_threads": "a subtask writes its files one after the other",
    "EmbeddedRocksDBStateBackend.get_number_of_transfer_threads": "it gives what was set, 4 at first",
    "FileSystemCheckpointStorage.get_write_buffer_size": "it gives what was set; a checkpoint file is written at once",
    "FileCompactStrategy.Builder.set_num_compact_threads": "each subtask joins its own files",
    "JdbcConnectionOptions.JdbcConnectionOptionsBuilder.with_driver_name": "the address says which database it is",
    "JdbcExecutionOptions.Builder.with_batch_size": "what a checkpoint holds is written at once",
    "JdbcExecutionOptions.Builder.with_batch_interval_ms": "rows are written when their checkpoint has completed",
    **{
        f"FileSink.{builder}.with_bucket_check_interval": "every file is looked at when an epoch ends"
        for builder in ("BaseBuilder", "RowFormatBuilder", "BulkFormatBuilder")
    },
}

_PARTITIONED = "a keyed stream is partitioned by its key, which cannot be overridden"
_KEYED = "it would set something on a key_by, which is no operator: set it on the operator behind it"
_OF_THE_WORKER = "PyFlink's workers use it between Java and Python; no program needs it, and there is no Java here"
_CACHED = "a stream is not kept between jobs; write it with a FileSink and read it with a FileSource"
_TYPES = "types are made by Types, such as Types.SQL_DATE() and Types.INSTANT()"
_CONNECTOR = (
    "it is a connector of Java; read with Spark's connector and env.from_data_frame(...), write with "
    "stream.for_each_batch(...), or write a source or sink in Python"
)
_CLUSTERS = "use KafkaSource, one for each cluster, and union()"
_OLD_KAFKA = "it is older than KafkaSource and KafkaSink, which take its place"
_RESTARTS = "strategies are made by the methods of RestartStrategies; get_description() says what one holds"
_CLEANUP = "strategies are made by StateTtlConfig.new_builder(ttl), and read by the getters"
_WINDOW_BYTES = "windows are stored by their declared type: the serializer is given to an assigner, and not called"
_TRIGGER_STATE = "the trigger keeps its state itself; subclass Trigger for another one"

_BASIC_TYPES = (
    *("STRING", "BOOLEAN", "CHAR", "BYTE", "SHORT", "INT", "LONG", "BIG_INT"),
    *("FLOAT", "DOUBLE", "BIG_DEC", "INSTANT"),
)

#: Name -> why, and what to do instead.
REFUSED: Final[dict[str, str]] = {
    "StreamExecutionEnvironment.create_input": (
        "input formats are classes of Java; read files with FileSource, and all else with env.from_data_frame(...)"
    ),
    "EmbeddedRocksDBStateBackend.set_options": (
        "a factory of options is a class of Java; use set_predefined_options(...), or the options "
        "state.backend.rocksdb.*"
    ),
    **{
        f"{streams}.{name}": "keep what you gave to broadcast() and connect() in variables of the program"
        for streams, names in {
            "BroadcastStream": "input_stream broadcast_state_descriptors",
            "BroadcastConnectedStream": "non_broadcast_stream broadcast_stream broadcast_state_descriptors",
        }.items()
        for name in names.split()
    },
    "DataStream.cache": _CACHED,
    "CachedDataStream": _CACHED,
    **{
        f"KeyedStream.{name}": _PARTITIONED
        for name in ("shuffle", "rebalance", "rescale", "forward", "broadcast", "partition_custom")
    },
    **{
        f"KeyedStream.{name}": _KEYED
        for name in (
            "name",
            "uid",
            "set_uid_hash",
            "set_parallelism",
            "set_max_parallelism",
            "force_non_parallel",
            "set_buffer_timeout",
            "start_new_chain",
            "disable_chaining",
            "slot_sharing_group",
            "set_description",
            "get_side_output",
            "cache",
        )
    },
    "KeyedStream.AccumulateType": "sum(), min(), max(), min_by() and max_by() are methods of the stream",
    **{
        f"BasicTypeInfo.{name}_TYPE_INFO": f"use Types.{name}()"
        for name in _BASIC_TYPES
    },
    "DateTypeInfo": _TYPES,
    "TimeTypeInfo": _TYPES,
    "TimestampTypeInfo": _TYPES,
    "SqlTimeTypeInfo": _TYPES,
    "InstantTypeInfo": _TYPES,
    "LocalTimeTypeInfo": _TYPES,
    "ExternalTypeInfo": _TYPES,
    "InputDependencyConstraint": "Flink itself does not read it any more; leave it out",
    "AssignerWithPeriodicWatermarksWrapper": (
        "it wraps an assigner of Java; use WatermarkStrategy with a TimestampAssigner"
    ),
    "RestartStrategies.NoRestartStrategyConfiguration": _RESTARTS,
    "RestartStrategies.FixedDelayRestartStrategyConfiguration": _RESTARTS,
    "RestartStrategies.FailureRateRestartStrategyConfiguration": _RESTARTS,
    "RestartStrategies.FallbackRestartStrategyConfiguration": _RESTARTS,
    "StateTtlConfig.CleanupStrategies.EMPTY_STRATEGY": _CLEANUP,
    "StateTtlConfig.CleanupStrategies.Strategies": _CLEANUP,
    "StateTtlConfig.CleanupStrategies.CleanupStrategy": _CLEANUP,
    "StateTtlConfig.CleanupStrategies.EmptyCleanupStrategy": _CLEANUP,
    "ReadOnlyBroadcastState.clear": "broadcast state is changed in process_broadcast_element() alone",
    **{
        f"{windows}WindowSerializer.{method}": _WINDOW_BYTES
        for windows in ("Time", "Count", "Global")
        for method in ("serialize", "deserialize")
    },
    **{
        f"Continuous{time}TimeTrigger.{name}": _TRIGGER_STATE
        for time in ("Event", "Processing")
        for name in ("register_next_fire_timestamp", "fire_timestamp_state", "state_desc")
    },
    "FileSource.for_bulk_file_format": "Parquet is read with FileSource.parquet(path), and CSV by record format",
    "BulkFormat": "Parquet is read with FileSource.parquet(path)",
    "FileSourceBuilder.set_file_enumerator": "FileSource finds files itself: see recursive(...) and matching(pattern)",
    "FileSourceBuilder.set_split_assigner": "each subtask reads the files that fall to it by their path",
    "FileEnumeratorProvider": "FileSource finds files itself: see recursive(...) and matching(pattern)",
    "FileSplitAssignerProvider": "each subtask reads the files that fall to it by their path",
    "StreamingFileSink": "it is older than FileSink, which takes its place",
    "CsvReaderFormat.text_line_format": "use StreamFormat.text_line_format()",
    "CsvSchemaBuilder.set_any_property_name": "a row has the columns of the schema and no others",
    "JsonRowDeserializationSchema.Builder.json_schema": "declare the fields with type_info(...)",
    "FlinkKafkaConsumer": _OLD_KAFKA,
    "FlinkKafkaConsumerBase": _OLD_KAFKA,
    "FlinkKafkaProducer": _OLD_KAFKA,
    "FlinkKafkaProducerBase": _OLD_KAFKA,
    "Semantic": "use DeliveryGuarantee",
    "datastream.connectors.hybrid_source": "read one source after the other, in two jobs, or union() both",
    "AvroSchema": "give the schema's JSON to Types.AVRO(...) or to AvroRowDeserializationSchema",
    "GenericRecordAvroTypeInfo": "use Types.AVRO(schema): records are rows with names",
    "AvroInputFormat": "read Avro files with Spark, spark.read.format('avro'), and env.from_data_frame(...)",
    "AvroBulkWriters": "write Parquet with FileSink.parquet(path), or Avro with Spark in stream.for_each_batch(...)",
    "datastream.formats.orc": "write Parquet with FileSink.parquet(path), or ORC with Spark in for_each_batch(...)",
    "datastream.formats.parquet": "use FileSource.parquet(path) and FileSink.parquet(path)",
    "CustomStateBackend": "a backend of your own is an entry point of a package: see how to write a state backend",
    "CustomCheckpointStorage": "use FileSystemCheckpointStorage(path), or JobManagerCheckpointStorage()",
}

#: Name -> what it stands for, and what to use instead.
JAVA_ONLY: Final[dict[str, str]] = {
    # The constructor of a class whose objects programs get from methods.
    "*.__init__(j_*)": "it wraps an object of Java; objects are made by the methods around the class",
    "*.get_java_function": "there is no object of Java behind it",
    "*.get_java_object": "there is no object of Java behind it",
    "*.get_java_type_info": "there is no object of Java behind it",
    "*.get_java_output_tag": "there is no object of Java behind it",
    "*.get_java_memory_size": "there is no object of Java behind it",
    "*.get_java_slot_sharing_group": "there is no object of Java behind it",
    "*.get_transformer": "a sink gets the rows of its stream as they are",
    "*.need_conversion": "values are Python's all the way; nothing is converted for Java",
    "*.to_internal_type": "values are Python's all the way; nothing is converted for Java",
    "*.from_internal_type": "values are Python's all the way; nothing is converted for Java",
    "RowKind.to_j_row_kind": "there is no object of Java behind it",
    "StreamExecutionEnvironment.serializer": "types say how values are stored; give type_info or output_type",
    "SourceFunction.__init__": "a source function is a class in Python: subclass SourceFunction",
    "SinkFunction.__init__": "a sink function is a class in Python: subclass SinkFunction",
    "Source.__init__": "a source is a class in Python: subclass Source",
    "Sink.__init__": "a sink is a class in Python: subclass TwoPhaseCommitSink",
    "StreamTransformer": "map the stream before sink_to(...)",
    "SupportsPreprocessing": "map the stream before sink_to(...)",
    "JavaObjectWrapper": "there are no objects of Java in a program",
    "RowDataBulkWriterFactory": "use CsvBulkWriters.for_schema(schema), or FileSink.parquet(path)",
    "InputFormat": "read files with FileSource, and all else with env.from_data_frame(...)",
    "TypeSerializer": "types say how values are stored: see holdfast.common.Types",
    "VoidNamespaceSerializer": _OF_THE_WORKER,
    "ResultTypeQueryable": "a source says its type in output_type()",
    "datastream.utils": _OF_THE_WORKER,
    **{
        f"Internal{kind}WindowFunction": _OF_THE_WORKER
        for kind in (
            "",
            "IterableAll",
            "IterableProcessAll",
            "IterableProcess",
            "Iterable",
            "SingleValueAll",
            "SingleValueProcessAll",
            "SingleValueProcess",
            "SingleValue",
        )
    },
    "InternalProcessAllWindowContext": _OF_THE_WORKER,
    "InternalProcessWindowContext": _OF_THE_WORKER,
    "PassThroughWindowFunction": _OF_THE_WORKER,
    "PassThroughAllWindowFunction": _OF_THE_WORKER,
    "AsyncFunctionDescriptor": _OF_THE_WORKER,
    "NullByteKeySelector": _OF_THE_WORKER,
    "WINDOW_STATE_NAME": _OF_THE_WORKER,
    "void": _OF_THE_WORKER,
    "FunctionWrapper": _OF_THE_WORKER,
    "JavaFunctionWrapper": _OF_THE_WORKER,
    "ReduceFunctionWrapper": _OF_THE_WORKER,
    "WindowOperationDescriptor": _OF_THE_WORKER,
    "Min": _OF_THE_WORKER,
    "long_to_int_with_bit_mixing": _OF_THE_WORKER,
    "mod_inverse": _OF_THE_WORKER,
    # What PyFlink's package of connectors has of its modules.
    **{name: _CONNECTOR for name in ("PulsarSource", "PulsarSourceBuilder", "StartCursor", "StopCursor")},
    **{name: _CONNECTOR for name in ("RMQSource", "RMQSink", "RMQConnectionConfig")},
    **{
        name: _CLUSTERS
        for name in (
            "DynamicKafkaSource",
            "DynamicKafkaSourceBuilder",
            "KafkaMetadataService",
            "KafkaRecordDeserializationSchema",
            "KafkaStreamSetSubscriber",
            "KafkaStreamSubscriber",
            "StreamPatternSubscriber",
            "SingleClusterTopicMetadataService",
        )
    },
    "datastream.connectors.cassandra": _CONNECTOR,
    "datastream.connectors.dynamic_kafka": _CLUSTERS,
    "datastream.connectors.elasticsearch": _CONNECTOR,
    "datastream.connectors.kinesis": _CONNECTOR,
    "datastream.connectors.pulsar": _CONNECTOR,
    "datastream.connectors.rabbitmq": _CONNECTOR,
}

_MADE_BY = "objects are made by the methods of streams, and get what these give"

#: Name -> why parameters differ, of what is supported.
DIFFERENT: Final[dict[str, str]] = {
    "StreamExecutionEnvironment.execute_async": "a job without a name is called 'Holdfast Streaming Job'",
    "BroadcastStream.__init__": _MADE_BY,
    "BroadcastConnectedStream.__init__": _MADE_BY,
    "AllWindowedStream.__init__": _MADE_BY,
    "BasicTypeInfo.__init__": "types are made by Types",
    "MapTypeInfo.__init__": "types are made by Types",
    "RowTypeInfo.__init__": "types are made by Types",
    "StateDescriptor.__init__": "descriptors are of the classes of their states",
    "StateTtlConfig.__init__": "it is made by StateTtlConfig.new_builder(ttl)",
    "StateTtlConfig.CleanupStrategies.__init__": _CLEANUP,
    "StateTtlConfig.CleanupStrategies.IncrementalCleanupStrategy.__init__": _CLEANUP,
}
