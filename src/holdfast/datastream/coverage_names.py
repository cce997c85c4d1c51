"""The names of PyFlink's DataStream API, by class, with the parameters that they have there."""

from __future__ import annotations

from typing import Final

SUPPORTED: Final[dict[str, str]] = {
    "StreamExecutionEnvironment": (
        "get_execution_environment(configuration=None); set_parallelism(parallelism); get_parallelism(); "
        "set_max_parallelism(max_parallelism); get_max_parallelism(); set_runtime_mode(execution_mode); "
        "enable_checkpointing(interval, mode=None); get_checkpoint_config(); get_checkpoint_interval(); "
        "get_checkpointing_mode(); get_checkpointing_consistency_mode(); set_default_savepoint_directory(directory); "
        "get_default_savepoint_directory(); is_unaligned_checkpoints_enabled(); is_force_unaligned_checkpoints(); "
        "configure(configuration); disable_operator_chaining(); is_chaining_enabled(); add_python_file(file_path); "
        "from_collection(collection, type_info=None); "
        "from_source(source, watermark_strategy, source_name, type_info=None); "
        "add_source(source_func, source_name='Custom Source', type_info=None); execute(job_name=None); "
        "execute_async(job_name=...); get_execution_plan(); close()"
    ),
    "JobClient": (
        "get_job_id(); get_job_status(); cancel(); "
        "stop_with_savepoint(advance_to_end_of_event_time, savepoint_directory=None); "
        "trigger_savepoint(savepoint_directory=None); get_accumulators(); get_job_execution_result()"
    ),
    "CheckpointConfig": (
        "set_checkpointing_mode(checkpointing_mode); get_checkpointing_mode(); "
        "set_checkpoint_interval(checkpoint_interval); get_checkpoint_interval(); "
        "set_checkpoint_timeout(checkpoint_timeout); get_checkpoint_timeout(); "
        "set_min_pause_between_checkpoints(min_pause_between_checkpoints); get_min_pause_between_checkpoints(); "
        "set_max_concurrent_checkpoints(max_concurrent_checkpoints); get_max_concurrent_checkpoints(); "
        "set_tolerable_checkpoint_failure_number(tolerable_checkpoint_failure_number); "
        "get_tolerable_checkpoint_failure_number(); set_fail_on_checkpointing_errors(fail_on_checkpointing_errors); "
        "is_fail_on_checkpointing_errors(); set_externalized_checkpoint_retention(retention); "
        "get_externalized_checkpoint_retention(); is_checkpointing_enabled(); is_externalized_checkpoints_enabled(); "
        "is_unaligned_checkpoints_enabled(); is_force_unaligned_checkpoints(); get_aligned_checkpoint_timeout(); "
        "get_alignment_timeout()"
    ),
    "CheckpointingMode": "EXACTLY_ONCE; AT_LEAST_ONCE",
    "ExternalizedCheckpointRetention": "DELETE_ON_CANCELLATION; RETAIN_ON_CANCELLATION; NO_EXTERNALIZED_CHECKPOINTS",
    "RuntimeExecutionMode": "STREAMING; BATCH; AUTOMATIC",
    "TimeDomain": "EVENT_TIME; PROCESSING_TIME",
    "DataStream": (
        "name(name); get_name(); uid(uid); set_uid_hash(uid_hash); set_parallelism(parallelism); "
        "set_max_parallelism(max_parallelism); force_non_parallel(); start_new_chain(); disable_chaining(); "
        "get_type(); map(func, output_type=None); flat_map(func, output_type=None); filter(func); "
        "key_by(key_selector, key_type=None); union(*streams); connect(ds); shuffle(); rescale(); rebalance(); "
        "forward(); project(*field_indexes); "
        "broadcast(broadcast_state_descriptor=None, *other_broadcast_state_descriptors); "
        "process(func, output_type=None); assign_timestamps_and_watermarks(watermark_strategy); "
        "partition_custom(partitioner, key_selector); add_sink(sink_func); sink_to(sink); "
        "execute_and_collect(job_execution_name=None, limit=None); print(sink_identifier=None); "
        "get_side_output(output_tag); window_all(window_assigner)"
    ),
    "DataStreamSink": "name(name); uid(uid); set_uid_hash(uid_hash); set_parallelism(parallelism); disable_chaining()",
    "KeyedStream": (
        "map(func, output_type=None); flat_map(func, output_type=None); filter(func); reduce(func); "
        "sum(position_to_sum=0); min(position_to_min=0); max(position_to_max=0); min_by(position_to_min_by=0); "
        "max_by(position_to_max_by=0); process(func, output_type=None); connect(ds); union(*streams); "
        "key_by(key_selector, key_type=None); window(window_assigner); count_window(size, slide=0)"
    ),
    "ConnectedStreams": (
        "key_by(key_selector1, key_selector2, key_type=None); map(func, output_type=None); "
        "flat_map(func, output_type=None); process(func, output_type=None)"
    ),
    "BroadcastConnectedStream": "process(func, output_type=None)",
    "OutputTag": "tag_id; type_info",
    "Function": "open(runtime_context); close()",
    "MapFunction": "map(value)",
    "FlatMapFunction": "flat_map(value)",
    "FilterFunction": "filter(value)",
    "ReduceFunction": "reduce(value1, value2)",
    "AggregateFunction": "create_accumulator(); add(value, accumulator); get_result(accumulator); merge(acc_a, acc_b)",
    "KeySelector": "get_key(value)",
    "Partitioner": "partition(key, num_partitions)",
    "CoMapFunction": "map1(value); map2(value)",
    "CoFlatMapFunction": "flat_map1(value); flat_map2(value)",
    "ProcessFunction": "process_element(value, ctx)",
    "KeyedProcessFunction": "process_element(value, ctx); on_timer(timestamp, ctx)",
    "CoProcessFunction": "process_element1(value, ctx); process_element2(value, ctx)",
    "KeyedCoProcessFunction": ("process_element1(value, ctx); process_element2(value, ctx); on_timer(timestamp, ctx)"),
    "BroadcastProcessFunction": "process_element(value, ctx); process_broadcast_element(value, ctx)",
    "KeyedBroadcastProcessFunction": (
        "process_element(value, ctx); process_broadcast_element(value, ctx); on_timer(timestamp, ctx)"
    ),
    "ProcessFunction.Context": "timer_service(); timestamp()",
    "KeyedProcessFunction.Context": "timer_service(); timestamp(); get_current_key()",
    "KeyedProcessFunction.OnTimerContext": "timer_service(); timestamp(); get_current_key(); time_domain()",
    "CoProcessFunction.Context": "timer_service(); timestamp()",
    "KeyedCoProcessFunction.Context": "timer_service(); timestamp(); get_current_key()",
    "KeyedCoProcessFunction.OnTimerContext": "timer_service(); timestamp(); get_current_key(); time_domain()",
    "BroadcastProcessFunction.Context": (
        "timestamp(); current_processing_time(); current_watermark(); get_broadcast_state(state_descriptor)"
    ),
    "BroadcastProcessFunction.ReadOnlyContext": (
        "timestamp(); current_processing_time(); current_watermark(); get_broadcast_state(state_descriptor)"
    ),
    "KeyedBroadcastProcessFunction.Context": (
        "timestamp(); current_processing_time(); current_watermark(); get_broadcast_state(state_descriptor)"
    ),
    "KeyedBroadcastProcessFunction.ReadOnlyContext": (
        "timestamp(); current_processing_time(); current_watermark(); get_broadcast_state(state_descriptor); "
        "timer_service(); get_current_key()"
    ),
    "KeyedBroadcastProcessFunction.OnTimerContext": (
        "timestamp(); current_processing_time(); current_watermark(); get_broadcast_state(state_descriptor); "
        "timer_service(); get_current_key(); time_domain()"
    ),
    "RuntimeContext": (
        "get_state(state_descriptor); get_list_state(state_descriptor); get_map_state(state_descriptor); "
        "get_reducing_state(state_descriptor); get_aggregating_state(state_descriptor); get_task_name(); "
        "get_number_of_parallel_subtasks(); get_max_number_of_parallel_subtasks(); get_index_of_this_subtask(); "
        "get_attempt_number(); get_task_name_with_subtasks(); get_job_parameter(key, default_value)"
    ),
    "TimerService": (
        "current_processing_time(); current_watermark(); register_processing_time_timer(timestamp); "
        "register_event_time_timer(timestamp); delete_processing_time_timer(timestamp); "
        "delete_event_time_timer(timestamp)"
    ),
    "ValueState": "value(); update(value); clear()",
    "ListState": "get(); add(value); add_all(values); update(values); clear(); __iter__()",
    "MapState": (
        "get(key); put(key, value); put_all(dict_value); remove(key); contains(key); items(); keys(); values(); "
        "is_empty(); clear(); __getitem__(key); __setitem__(key, value); __delitem__(key); __contains__(key); "
        "__iter__()"
    ),
    "ReducingState": "get(); add(value); clear()",
    "AggregatingState": "get(); add(value); clear()",
    "ReadOnlyBroadcastState": "get(key); contains(key); items(); keys(); values(); is_empty()",
    "BroadcastState": (
        "get(key); contains(key); items(); keys(); values(); is_empty(); put(key, value); put_all(dict_value); "
        "remove(key); clear()"
    ),
    "ValueStateDescriptor": "__init__(name, value_type_info); get_name(); enable_time_to_live(ttl_config)",
    "ListStateDescriptor": "__init__(name, elem_type_info); get_name(); enable_time_to_live(ttl_config)",
    "MapStateDescriptor": (
        "__init__(name, key_type_info, value_type_info); get_name(); enable_time_to_live(ttl_config)"
    ),
    "ReducingStateDescriptor": (
        "__init__(name, reduce_function, type_info); get_name(); enable_time_to_live(ttl_config)"
    ),
    "AggregatingStateDescriptor": (
        "__init__(name, agg_function, state_type_info); get_name(); enable_time_to_live(ttl_config)"
    ),
    "StateTtlConfig": "new_builder(ttl)",
    "StateTtlConfig.Builder": (
        "set_update_type(update_type); update_ttl_on_create_and_write(); update_ttl_on_read_and_write(); "
        "set_state_visibility(state_visibility); return_expired_if_not_cleaned_up(); never_return_expired(); "
        "set_ttl_time_characteristic(ttl_time_characteristic); use_processing_time(); cleanup_full_snapshot(); "
        "cleanup_incrementally(cleanup_size, run_cleanup_for_every_record); "
        "cleanup_in_rocksdb_compact_filter(query_time_after_num_entries, periodic_compaction_time=None); "
        "disable_cleanup_in_background(); set_ttl(ttl); build()"
    ),
    "StateTtlConfig.UpdateType": "Disabled; OnCreateAndWrite; OnReadAndWrite",
    "StateTtlConfig.StateVisibility": "ReturnExpiredIfNotCleanedUp; NeverReturnExpired",
    "Types": (
        "STRING(); BYTE(); BOOLEAN(); SHORT(); INT(); LONG(); FLOAT(); DOUBLE(); CHAR(); BIG_INT(); BIG_DEC(); "
        "INSTANT(); SQL_DATE(); SQL_TIME(); SQL_TIMESTAMP(); PICKLED_BYTE_ARRAY(); ROW(field_types); "
        "ROW_NAMED(field_names, field_types); TUPLE(field_types); PRIMITIVE_ARRAY(element_type); "
        "BASIC_ARRAY(element_type); OBJECT_ARRAY(element_type); MAP(key_type_info, value_type_info); "
        "LIST(element_type_info)"
    ),
    "WatermarkStrategy": (
        "for_monotonous_timestamps(); for_bounded_out_of_orderness(max_out_of_orderness); no_watermarks(); "
        "with_timestamp_assigner(timestamp_assigner); with_idleness(idle_timeout)"
    ),
    "TimestampAssigner": "extract_timestamp(value, record_timestamp)",
    "Time": (
        "milliseconds(milliseconds); seconds(seconds); minutes(minutes); hours(hours); days(days); to_milliseconds()"
    ),
    "Duration": (
        "of_days(days); of_hours(hours); of_minutes(minutes); of_seconds(seconds); of_millis(millis); of_nanos(nanos)"
    ),
}

_UNALIGNED = "nothing is between tasks when an epoch ends, so an aligned checkpoint never waits: both kinds are one"
_SLOTS = "Spark decides which executor a task runs on, and subtasks of one number share a task of each level"

#: Name -> why it changes nothing.
ACCEPTED: Final[dict[str, str]] = {
    "StreamExecutionEnvironment.set_buffer_timeout(timeout_millis)": (
        "rows travel at the end of an epoch, or when there are enough of them"
    ),
    "StreamExecutionEnvironment.get_buffer_timeout()": "it gives what was set, -1 at first",
    "StreamExecutionEnvironment.enable_changelog_state_backend(enabled)": (
        "every backend here knows what changed since a checkpoint, and stores that alone"
    ),
    "CheckpointConfig.enable_unaligned_checkpoints(enabled=True)": _UNALIGNED,
    "CheckpointConfig.disable_unaligned_checkpoints()": _UNALIGNED,
    "CheckpointConfig.set_force_unaligned_checkpoints(force_unaligned_checkpoints=True)": _UNALIGNED,
    "CheckpointConfig.set_aligned_checkpoint_timeout(aligned_checkpoint_timeout)": _UNALIGNED,
    "CheckpointConfig.set_alignment_timeout(alignment_timeout)": _UNALIGNED,
    "DataStream.set_buffer_timeout(timeout_millis)": (
        "rows travel at the end of an epoch, or when there are enough of them"
    ),
    "DataStream.slot_sharing_group(slot_sharing_group)": _SLOTS,
    "DataStream.set_description(description)": "a description is shown nowhere; use name()",
    "DataStreamSink.slot_sharing_group(slot_sharing_group)": _SLOTS,
    "DataStreamSink.set_description(description)": "a description is shown nowhere; use name()",
}

_KEYED = "it would set something on a key_by, which is no operator: set it on the operator behind it"
_PARTITIONED = "a keyed stream is partitioned by its key, which cannot be overridden"

#: Name -> why, and what to do instead.
REFUSED: Final[dict[str, str]] = {
    "StreamExecutionEnvironment.create_input(input_format, type_info=None)": (
        "input formats are classes of Java; read files with FileSource, and all else with env.from_data_frame(...)"
    ),
    "StreamExecutionEnvironment.register_cached_file(file_path, name, executable=False)": (
        "Spark ships files: give it to spark.sparkContext.addFile(path) and open it by SparkFiles.get(name)"
    ),
    "DataStream.cache()": "a stream is not kept between jobs; write it with a FileSink and read it with a FileSource",
    "RuntimeContext.get_metrics_group()": "functions have no metrics yet",
    **{
        f"KeyedStream.{name}": _PARTITIONED
        for name in (
            "shuffle()",
            "rebalance()",
            "rescale()",
            "forward()",
            "broadcast()",
            "partition_custom(partitioner, key_selector)",
        )
    },
    **{
        f"KeyedStream.{name}": _KEYED
        for name in (
            "name(name)",
            "uid(uid)",
            "set_uid_hash(uid_hash)",
            "set_parallelism(parallelism)",
            "set_max_parallelism(max_parallelism)",
            "force_non_parallel()",
            "set_buffer_timeout(timeout_millis)",
            "start_new_chain()",
            "disable_chaining()",
            "slot_sharing_group(slot_sharing_group)",
            "set_description(description)",
            "cache()",
        )
    },
}
