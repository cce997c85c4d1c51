"""PyFlink's names, written down here a second time: the declaration has all of them, and the code what it declares."""

from __future__ import annotations

import ast
import inspect
import logging
from pathlib import Path
from typing import Any

import pytest

import holdfast.common
import holdfast.datastream
import holdfast.datastream.state
import holdfast.datastream.window
from holdfast.common import Duration, Types
from holdfast.datastream import DataStream, StreamExecutionEnvironment
from holdfast.datastream.coverage import COVERAGE, Coverage, Support
from holdfast.datastream.coverage_reference import render
from holdfast.errors import ProgramError

_STATE = "clear"
_TIMES = "timestamp current_processing_time current_watermark get_broadcast_state"
_DESCRIPTOR = "__init__ get_name enable_time_to_live"
_ASSIGNER = "assign_windows get_default_trigger get_window_serializer is_event_time"
_TRIGGER = "on_element on_processing_time on_event_time can_merge on_merge clear"
_TRIGGER_CONTEXT = (
    "get_current_processing_time get_current_watermark register_processing_time_timer register_event_time_timer "
    "delete_processing_time_timer delete_event_time_timer get_partitioned_state"
)
_WINDOWED = (
    "trigger allowed_lateness side_output_late_data reduce aggregate apply process get_execution_environment "
    "get_input_type"
)
_WINDOW_CONTEXT = "window current_processing_time current_watermark window_state global_state"

#: The names of PyFlink's DataStream API that concern streams, functions, state, windows, time and types.
NAMES: dict[str, str] = {
    "StreamExecutionEnvironment": (
        "get_execution_environment set_parallelism get_parallelism set_max_parallelism get_max_parallelism "
        "set_runtime_mode enable_checkpointing get_checkpoint_config get_checkpoint_interval get_checkpointing_mode "
        "get_checkpointing_consistency_mode enable_changelog_state_backend set_default_savepoint_directory "
        "get_default_savepoint_directory is_unaligned_checkpoints_enabled is_force_unaligned_checkpoints configure "
        "set_buffer_timeout get_buffer_timeout disable_operator_chaining is_chaining_enabled from_collection "
        "from_source add_source create_input execute execute_async get_execution_plan register_cached_file "
        "add_python_file close"
    ),
    "JobClient": (
        "get_job_id get_job_status cancel stop_with_savepoint trigger_savepoint get_accumulators "
        "get_job_execution_result"
    ),
    "CheckpointConfig": (
        "set_checkpointing_mode get_checkpointing_mode set_checkpoint_interval get_checkpoint_interval "
        "set_checkpoint_timeout get_checkpoint_timeout set_min_pause_between_checkpoints "
        "get_min_pause_between_checkpoints set_max_concurrent_checkpoints get_max_concurrent_checkpoints "
        "set_tolerable_checkpoint_failure_number get_tolerable_checkpoint_failure_number "
        "set_externalized_checkpoint_retention get_externalized_checkpoint_retention set_aligned_checkpoint_timeout "
        "get_aligned_checkpoint_timeout set_alignment_timeout get_alignment_timeout set_fail_on_checkpointing_errors "
        "is_fail_on_checkpointing_errors is_checkpointing_enabled is_externalized_checkpoints_enabled "
        "enable_unaligned_checkpoints disable_unaligned_checkpoints is_unaligned_checkpoints_enabled "
        "set_force_unaligned_checkpoints is_force_unaligned_checkpoints"
    ),
    "CheckpointingMode": "EXACTLY_ONCE AT_LEAST_ONCE",
    "ExternalizedCheckpointRetention": "DELETE_ON_CANCELLATION RETAIN_ON_CANCELLATION NO_EXTERNALIZED_CHECKPOINTS",
    "RuntimeExecutionMode": "STREAMING BATCH AUTOMATIC",
    "TimeDomain": "EVENT_TIME PROCESSING_TIME",
    "DataStream": (
        "name get_name uid set_uid_hash set_parallelism set_max_parallelism force_non_parallel set_buffer_timeout "
        "start_new_chain disable_chaining slot_sharing_group set_description get_type map flat_map filter key_by union "
        "connect shuffle rescale rebalance forward project broadcast process assign_timestamps_and_watermarks "
        "partition_custom add_sink sink_to execute_and_collect print get_side_output cache window_all"
    ),
    "DataStreamSink": "name uid set_uid_hash set_parallelism set_description disable_chaining slot_sharing_group",
    "KeyedStream": (
        "map flat_map filter reduce sum min max min_by max_by process connect union key_by shuffle rebalance rescale "
        "forward broadcast partition_custom name uid set_uid_hash set_parallelism set_max_parallelism "
        "force_non_parallel set_buffer_timeout start_new_chain disable_chaining slot_sharing_group set_description "
        "cache window count_window"
    ),
    "ConnectedStreams": "key_by map flat_map process",
    "BroadcastConnectedStream": "process",
    "OutputTag": "tag_id type_info",
    "Function": "open close",
    "MapFunction": "map",
    "FlatMapFunction": "flat_map",
    "FilterFunction": "filter",
    "ReduceFunction": "reduce",
    "AggregateFunction": "create_accumulator add get_result merge",
    "KeySelector": "get_key",
    "Partitioner": "partition",
    "CoMapFunction": "map1 map2",
    "CoFlatMapFunction": "flat_map1 flat_map2",
    "ProcessFunction": "process_element",
    "KeyedProcessFunction": "process_element on_timer",
    "CoProcessFunction": "process_element1 process_element2",
    "KeyedCoProcessFunction": "process_element1 process_element2 on_timer",
    "BroadcastProcessFunction": "process_element process_broadcast_element",
    "KeyedBroadcastProcessFunction": "process_element process_broadcast_element on_timer",
    "ProcessFunction.Context": "timer_service timestamp",
    "KeyedProcessFunction.Context": "timer_service timestamp get_current_key",
    "KeyedProcessFunction.OnTimerContext": "timer_service timestamp get_current_key time_domain",
    "CoProcessFunction.Context": "timer_service timestamp",
    "KeyedCoProcessFunction.Context": "timer_service timestamp get_current_key",
    "KeyedCoProcessFunction.OnTimerContext": "timer_service timestamp get_current_key time_domain",
    "BroadcastProcessFunction.Context": _TIMES,
    "BroadcastProcessFunction.ReadOnlyContext": _TIMES,
    "KeyedBroadcastProcessFunction.Context": _TIMES,
    "KeyedBroadcastProcessFunction.ReadOnlyContext": f"{_TIMES} timer_service get_current_key",
    "KeyedBroadcastProcessFunction.OnTimerContext": f"{_TIMES} timer_service get_current_key time_domain",
    "RuntimeContext": (
        "get_state get_list_state get_map_state get_reducing_state get_aggregating_state get_task_name "
        "get_number_of_parallel_subtasks get_max_number_of_parallel_subtasks get_index_of_this_subtask "
        "get_attempt_number get_task_name_with_subtasks get_job_parameter get_metrics_group"
    ),
    "TimerService": (
        "current_processing_time current_watermark register_processing_time_timer register_event_time_timer "
        "delete_processing_time_timer delete_event_time_timer"
    ),
    "ValueState": f"value update {_STATE}",
    "ListState": f"get add add_all update __iter__ {_STATE}",
    "MapState": (
        "get put put_all remove contains items keys values is_empty __getitem__ __setitem__ __delitem__ __contains__ "
        f"__iter__ {_STATE}"
    ),
    "ReducingState": f"get add {_STATE}",
    "AggregatingState": f"get add {_STATE}",
    "ReadOnlyBroadcastState": "get contains items keys values is_empty",
    "BroadcastState": f"get contains items keys values is_empty put put_all remove {_STATE}",
    "ValueStateDescriptor": _DESCRIPTOR,
    "ListStateDescriptor": _DESCRIPTOR,
    "MapStateDescriptor": _DESCRIPTOR,
    "ReducingStateDescriptor": _DESCRIPTOR,
    "AggregatingStateDescriptor": _DESCRIPTOR,
    "StateTtlConfig": "new_builder",
    "StateTtlConfig.Builder": (
        "set_update_type update_ttl_on_create_and_write update_ttl_on_read_and_write set_state_visibility "
        "return_expired_if_not_cleaned_up never_return_expired set_ttl_time_characteristic use_processing_time "
        "cleanup_full_snapshot cleanup_incrementally cleanup_in_rocksdb_compact_filter disable_cleanup_in_background "
        "set_ttl build"
    ),
    "StateTtlConfig.UpdateType": "Disabled OnCreateAndWrite OnReadAndWrite",
    "StateTtlConfig.StateVisibility": "ReturnExpiredIfNotCleanedUp NeverReturnExpired",
    "Types": (
        "STRING BYTE BOOLEAN SHORT INT LONG FLOAT DOUBLE CHAR BIG_INT BIG_DEC INSTANT SQL_DATE SQL_TIME SQL_TIMESTAMP "
        "PICKLED_BYTE_ARRAY ROW ROW_NAMED TUPLE PRIMITIVE_ARRAY BASIC_ARRAY OBJECT_ARRAY MAP LIST"
    ),
    "WatermarkStrategy": (
        "for_monotonous_timestamps for_bounded_out_of_orderness no_watermarks with_timestamp_assigner with_idleness"
    ),
    "TimestampAssigner": "extract_timestamp",
    "Time": "milliseconds seconds minutes hours days to_milliseconds",
    "Duration": "of_days of_hours of_minutes of_seconds of_millis of_nanos",
    "WindowedStream": _WINDOWED,
    "AllWindowedStream": _WINDOWED,
    "WindowFunction": "apply",
    "AllWindowFunction": "apply",
    "ProcessWindowFunction": "process clear",
    "ProcessWindowFunction.Context": _WINDOW_CONTEXT,
    "ProcessAllWindowFunction": "process clear",
    "ProcessAllWindowFunction.Context": _WINDOW_CONTEXT,
    "Window": "max_timestamp",
    "TimeWindow": "start end max_timestamp intersects cover get_window_start_with_offset merge_windows",
    "CountWindow": "id max_timestamp",
    "GlobalWindow": "get max_timestamp",
    "WindowAssigner": _ASSIGNER,
    "WindowAssigner.WindowAssignerContext": "get_current_processing_time get_runtime_context",
    "MergingWindowAssigner": f"{_ASSIGNER} merge_windows",
    "MergingWindowAssigner.MergeCallback": "merge",
    "SessionWindowTimeGapExtractor": "extract",
    "TumblingEventTimeWindows": f"of {_ASSIGNER}",
    "TumblingProcessingTimeWindows": f"of {_ASSIGNER}",
    "SlidingEventTimeWindows": f"of {_ASSIGNER}",
    "SlidingProcessingTimeWindows": f"of {_ASSIGNER}",
    "EventTimeSessionWindows": f"with_gap with_dynamic_gap merge_windows {_ASSIGNER}",
    "ProcessingTimeSessionWindows": f"with_gap with_dynamic_gap merge_windows {_ASSIGNER}",
    "DynamicEventTimeSessionWindows": f"with_dynamic_gap merge_windows {_ASSIGNER}",
    "DynamicProcessingTimeSessionWindows": f"with_dynamic_gap merge_windows {_ASSIGNER}",
    "GlobalWindows": f"create {_ASSIGNER}",
    "CountTumblingWindowAssigner": f"of {_ASSIGNER}",
    "CountSlidingWindowAssigner": f"of {_ASSIGNER}",
    "TriggerResult": "CONTINUE FIRE_AND_PURGE FIRE PURGE is_fire is_purge",
    "Trigger": _TRIGGER,
    "Trigger.TriggerContext": _TRIGGER_CONTEXT,
    "Trigger.OnMergeContext": f"{_TRIGGER_CONTEXT} merge_partitioned_state",
    "EventTimeTrigger": f"create {_TRIGGER}",
    "ProcessingTimeTrigger": f"create {_TRIGGER}",
    "ContinuousEventTimeTrigger": f"of {_TRIGGER}",
    "ContinuousProcessingTimeTrigger": f"of {_TRIGGER}",
    "PurgingTrigger": f"of {_TRIGGER}",
    "CountTrigger": f"of {_TRIGGER}",
    "NeverTrigger": _TRIGGER,
    "TimeWindowSerializer": "__init__",
    "CountWindowSerializer": "__init__",
    "GlobalWindowSerializer": "__init__",
}


def test_every_name_is_declared_once() -> None:
    declared = [entry.path for entry in COVERAGE]
    assert len(declared) == len(set(declared))
    expected = {f"{owner}.{name}" for owner, names in NAMES.items() for name in names.split()}
    assert {entry.path for entry in COVERAGE if entry.owner in NAMES} == expected


def owner_of(entry: Coverage) -> Any:
    first, *rest = entry.owner.split(".")
    modules = (holdfast.datastream, holdfast.datastream.state, holdfast.datastream.window, holdfast.common)
    found = next(getattr(module, first) for module in modules if hasattr(module, first))
    for part in rest:
        found = getattr(found, part)
    return found


def declared_parameters(entry: Coverage) -> list[tuple[str, str, Any]]:
    """Name, kind and default of each parameter; ``...`` stands for any default."""
    arguments = ast.parse(f"def f{entry.signature}: ...").body[0].args  # type: ignore[attr-defined]  # a function
    missing = [inspect.Parameter.empty] * (len(arguments.args) - len(arguments.defaults))
    defaults = [*missing, *(ast.literal_eval(default) for default in arguments.defaults)]
    found = [(a.arg, "plain", default) for a, default in zip(arguments.args, defaults, strict=True)]
    return [*found, (arguments.vararg.arg, "any number", ...)] if arguments.vararg else found


SUPPORTED = [entry for entry in COVERAGE if entry.support is not Support.REFUSED]


@pytest.mark.parametrize("entry", SUPPORTED, ids=lambda entry: entry.path)
def test_what_is_not_refused_exists_with_the_same_parameters(entry: Coverage) -> None:
    owner = owner_of(entry)
    if not entry.signature:
        assert hasattr(owner, entry.name) or entry.name in inspect.signature(owner).parameters
        return
    given = [p for p in inspect.signature(getattr(owner, entry.name)).parameters.values() if p.name != "self"]
    declared = declared_parameters(entry)
    for parameter, (name, kind, default) in zip(given, declared, strict=False):
        assert parameter.name == name
        assert (parameter.kind is parameter.VAR_POSITIONAL) == (kind == "any number")
        if default is inspect.Parameter.empty:
            continue
        assert default is ... or parameter.default == default
        assert kind == "any number" or parameter.default is not inspect.Parameter.empty
    assert len(given) >= len(declared)
    more = given[len(declared) :]
    assert all(one.default is not inspect.Parameter.empty or one.kind is one.VAR_KEYWORD for one in more)


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    return StreamExecutionEnvironment.get_execution_environment()


@pytest.fixture
def stream(env: StreamExecutionEnvironment) -> DataStream:
    return env.from_collection([1], Types.LONG()).map(lambda n: n, Types.LONG())


def call(target: Any, entry: Coverage) -> Any:
    """With values for all parameters that have no default."""
    needed = [name for name, kind, default in declared_parameters(entry) if default is inspect.Parameter.empty]
    values = {"enabled": True, "timeout_millis": 5, "aligned_checkpoint_timeout": Duration.of_seconds(3)}
    values["alignment_timeout"] = Duration.of_seconds(3)
    return getattr(target, entry.name)(*(values.get(name, "x") for name in needed))


def target_of(entry: Coverage, env: StreamExecutionEnvironment, stream: DataStream) -> Any:
    if entry.owner == "StreamExecutionEnvironment":
        return env
    if entry.owner == "CheckpointConfig":
        return env.get_checkpoint_config()
    if entry.owner == "DataStreamSink":
        return stream.print()
    return stream.key_by(lambda n: n) if entry.owner == "KeyedStream" else stream


@pytest.mark.parametrize("entry", [e for e in COVERAGE if e.support is Support.ACCEPTED], ids=lambda entry: entry.path)
def test_what_is_accepted_is_noted(
    entry: Coverage, env: StreamExecutionEnvironment, stream: DataStream, caplog: pytest.LogCaptureFixture
) -> None:
    target = target_of(entry, env, stream)
    with caplog.at_level(logging.INFO, logger="holdfast"):
        result = call(target, entry)
    if entry.name.startswith("get_"):
        return
    assert type(result) is type(target)
    assert f"has no effect: {entry.note}." in caplog.text
    plain = StreamExecutionEnvironment.get_execution_environment()
    assert env.job_settings().checkpoint == plain.job_settings().checkpoint


@pytest.mark.parametrize(
    "entry",
    [e for e in COVERAGE if e.support is Support.REFUSED and e.owner != "RuntimeContext"],
    ids=lambda entry: entry.path,
)
def test_what_is_refused_says_so(entry: Coverage, env: StreamExecutionEnvironment, stream: DataStream) -> None:
    with pytest.raises(ProgramError, match=r"Cannot override partitioning|is not available: "):
        call(target_of(entry, env, stream), entry)


def test_what_was_set_is_given_back(env: StreamExecutionEnvironment) -> None:
    config = env.get_checkpoint_config()
    assert (env.is_unaligned_checkpoints_enabled(), env.get_buffer_timeout(), env.is_chaining_enabled()) == (
        False,
        -1,
        True,
    )
    config.enable_unaligned_checkpoints().set_force_unaligned_checkpoints()
    config.set_alignment_timeout(Duration.of_seconds(3))
    env.set_buffer_timeout(7).disable_operator_chaining().set_default_savepoint_directory("/s")
    assert env.is_unaligned_checkpoints_enabled() and env.is_force_unaligned_checkpoints()
    assert config.get_aligned_checkpoint_timeout() == Duration.of_seconds(3)
    assert (env.get_buffer_timeout(), env.is_chaining_enabled()) == (7, False)
    assert env.get_default_savepoint_directory() == "/s"
    config.disable_unaligned_checkpoints()
    assert not config.is_unaligned_checkpoints_enabled()


def test_the_page_is_the_declaration() -> None:
    page = Path(__file__).parents[2] / "docs/reference/pyflink-coverage.md"
    assert page.read_text() == render(), "run: make docs"
