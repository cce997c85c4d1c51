"""Classes that hold settings, and the small values of programs."""

from pyflink.common import Duration, Instant, JobStatus, Time, Types, WatermarkStrategy
from pyflink.common.serialization import RowFieldExtractorSchema
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import (
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    OutputTag,
    PredefinedOptions,
    SlotSharingGroup,
    TimeDomain,
)
from pyflink.datastream.state import StateTtlConfig

from tests.parity.case import facts, program, told


@facts(8)
def state_backends(_, __):
    rocksdb = EmbeddedRocksDBStateBackend()
    rocksdb.set_predefined_options(PredefinedOptions.SPINNING_DISK_OPTIMIZED)
    rocksdb.set_db_storage_paths("/tmp/one")
    rocksdb.set_number_of_transfer_threads(3)
    return told(
        lambda: type(HashMapStateBackend()).__name__,
        lambda: str(rocksdb.get_predefined_options()),
        lambda: str(rocksdb.get_number_of_transfer_threads()),
        lambda: str(EmbeddedRocksDBStateBackend().get_predefined_options()),
        lambda: str([option.name for option in PredefinedOptions]),
    )


@facts(8)
def checkpoint_storages(_, __):
    storage = FileSystemCheckpointStorage("file:///var/checkpoints/")
    return told(
        lambda: storage.get_checkpoint_path(),
        lambda: str(storage.get_min_file_size_threshold()),
        lambda: str(storage.get_write_buffer_size()),
        lambda: str(FileSystemCheckpointStorage("file:///var/checkpoints", None, 2048).get_min_file_size_threshold()),
        lambda: str(JobManagerCheckpointStorage().get_max_state_size()),
        lambda: str(JobManagerCheckpointStorage(max_state_size=100).get_max_state_size()),
        lambda: str(JobManagerCheckpointStorage("file:///var/c").get_checkpoint_path()),
    )


@facts(8)
def resources(_, __):
    group = (
        SlotSharingGroup.builder("mine")
        .set_cpu_cores(1.5)
        .set_task_heap_memory(MemorySize(bytes_size=100))
        .set_task_off_heap_memory_mb(2)
        .set_managed_memory_mb(3)
        .set_external_resource("gpu", 1.0)
        .build()
    )
    return told(
        lambda: group.get_name(),
        lambda: str(group.get_cpu_cores()),
        lambda: str(group.get_task_heap_memory().get_bytes()),
        lambda: str(group.get_task_off_heap_memory().get_mebi_bytes()),
        lambda: str(group.get_managed_memory().get_mebi_bytes()),
        lambda: str(group.get_external_resources()),
        lambda: str(MemorySize.of_mebi_bytes(3).get_kibi_bytes()),
        lambda: str(MemorySize(bytes_size=5000)),
        lambda: str(MemorySize.of_mebi_bytes(1) < MemorySize.of_mebi_bytes(2)),
        lambda: str(SlotSharingGroup.builder("plain").build().get_cpu_cores()),
    )


@facts(8)
def times_alone(_, __):
    return told(
        lambda: str(Time.seconds(2).to_milliseconds()),
        lambda: str(Time.milliseconds(milliseconds=5)),
        lambda: str(Time.days(1) == Time.hours(24)),
        lambda: str(Duration.of_seconds(2) == Duration.of_millis(2000)),
        lambda: repr(Instant.of_epoch_milli(1234)),
        lambda: str(Instant.of_epoch_milli(1234).to_epoch_milli()),
        lambda: str(Instant(1, 2) == Instant(1, 2)),
        lambda: repr(Instant(-1, 999_000_000)),
        lambda: str(TimeDomain.EVENT_TIME),
        lambda: str([domain.name for domain in TimeDomain]),
    )


@facts(8)
def statuses(_, __):
    names = [
        "CREATED",
        "RUNNING",
        "FAILING",
        "FAILED",
        "CANCELLING",
        "CANCELED",
        "FINISHED",
        "RESTARTING",
        "SUSPENDED",
    ]
    found = [JobStatus[name] for name in names]
    return [f"{status.name} {status.is_terminal_state()} {status.is_globally_terminal_state()}" for status in found]


@facts(8)
def time_to_live(_, __):
    config = (
        StateTtlConfig.new_builder(Time.seconds(5))
        .update_ttl_on_read_and_write()
        .return_expired_if_not_cleaned_up()
        .cleanup_full_snapshot()
        .cleanup_incrementally(7, True)
        .build()
    )
    cleanup = config.get_cleanup_strategies()
    return told(
        lambda: str(config.get_ttl().to_milliseconds()),
        lambda: config.get_update_type().name,
        lambda: config.get_state_visibility().name,
        lambda: config.get_ttl_time_characteristic().name,
        lambda: str(config.is_enabled()),
        lambda: str(cleanup.in_full_snapshot()),
        lambda: str(cleanup.is_cleanup_in_background()),
        lambda: str(cleanup.get_incremental_cleanup_strategy().get_cleanup_size()),
        lambda: str(cleanup.get_incremental_cleanup_strategy().run_cleanup_for_every_record()),
    )


@facts(8)
def small_values(_, __):
    return told(
        lambda: OutputTag("", Types.INT()),
        lambda: OutputTag("a", Types.INT()).tag_id,
        lambda: RowFieldExtractorSchema(-1),
    )


class Value(TimestampAssigner):
    def extract_timestamp(self, value, record_timestamp):
        return value


@program(8)
def aligned_watermarks(env, out):
    strategy = (
        WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(5))
        .with_timestamp_assigner(Value())
        .with_idleness(Duration.of_seconds(5))
        .with_watermark_alignment("group", Duration.of_seconds(10), Duration.of_millis(200))
    )
    one = env.from_collection([1, 2, 3], Types.LONG()).assign_timestamps_and_watermarks(strategy)
    return one.union(env.from_collection([1_000, 2_000], Types.LONG()).assign_timestamps_and_watermarks(strategy))


@program(8)
def slot_sharing_groups(env, out):
    group = SlotSharingGroup.builder("mine").build()
    env.register_slot_sharing_group(group)
    return env.from_collection([1, 2], Types.INT()).map(lambda n: n, Types.INT()).slot_sharing_group(group)


@facts(8)
def execution_plan(env, __):
    """Without a node for a union."""
    import json

    one = env.from_collection([1], Types.INT()).map(lambda n: n, Types.INT()).name("one").set_parallelism(1)
    other = env.from_collection([2], Types.INT()).map(lambda n: n, Types.INT()).name("other").set_parallelism(1)
    one.union(other).map(lambda n: n, Types.INT()).name("last").set_parallelism(1).print().name("print")
    nodes = json.loads(env.get_execution_plan())["nodes"]
    return [str(len(nodes)), str([node["parallelism"] for node in nodes])]
