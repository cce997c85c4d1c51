"""State backends, checkpoint storages and slot sharing groups as values: what they say is what is configured."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.common import Configuration
from holdfast.common.settings_parser import parse_settings
from holdfast.datastream import (
    EmbeddedRocksDBStateBackend,
    FileSystemCheckpointStorage,
    HashMapStateBackend,
    JobManagerCheckpointStorage,
    MemorySize,
    PredefinedOptions,
    SlotSharingGroup,
    StateBackend,
    StreamExecutionEnvironment,
)
from holdfast.errors import ProgramError
from holdfast.types.settings import StorageKind


@pytest.fixture
def env() -> StreamExecutionEnvironment:
    configured = {"state.backend": "rocksdb", "state.backend.incremental": True}
    return StreamExecutionEnvironment.get_execution_environment(Configuration.from_dict(configured))


def parsed(env: StreamExecutionEnvironment) -> Any:
    return parse_settings(env.get_configuration())


def test_a_backend_takes_the_place_of_the_one_before(env: StreamExecutionEnvironment) -> None:
    assert parsed(env).backend.name == "rocksdb"
    assert env.set_state_backend(HashMapStateBackend()) is env
    assert parsed(env).backend.name == "heap"


def test_rocksdb_configures_what_it_says(env: StreamExecutionEnvironment) -> None:
    backend = EmbeddedRocksDBStateBackend(False)
    backend.set_predefined_options(PredefinedOptions.FLASH_SSD_OPTIMIZED)
    backend.set_db_storage_paths("/fast")
    env.set_state_backend(HashMapStateBackend()).set_state_backend(backend)
    assert parsed(env).backend.name == "rocksdb"
    assert not parsed(env).checkpoint.incremental
    assert env.get_configuration().get_string("state.backend.rocksdb.predefined-options", "") == "FLASH_SSD_OPTIMIZED"
    assert env.get_configuration().get_string("holdfast.state.local-dir", "") == "/fast"
    assert backend.get_db_storage_paths() == ["/fast"]
    assert backend.get_predefined_options() is PredefinedOptions.FLASH_SSD_OPTIMIZED


def test_what_rocksdb_does_not_say_stays_as_it_is(env: StreamExecutionEnvironment) -> None:
    env.get_configuration().set_string("execution.checkpointing.incremental", "false")
    before = env.get_configuration().to_dict()
    backend = EmbeddedRocksDBStateBackend()
    env.set_state_backend(backend)
    after = env.get_configuration().to_dict()
    assert {**before, "state.backend.type": "rocksdb"} == {**after, "state.backend": "rocksdb"}
    assert (backend.get_options(), backend.get_db_storage_paths()) == (None, [])
    assert backend.is_incremental_checkpoints_enabled()
    backend.set_number_of_transfer_threads(9)
    assert backend.get_number_of_transfer_threads() == 9


def test_what_backends_refuse(env: StreamExecutionEnvironment) -> None:
    backend = EmbeddedRocksDBStateBackend()
    with pytest.raises(ProgramError, match="was given 2 directories"):
        backend.set_db_storage_paths("/a", "/b")
    with pytest.raises(ProgramError, match=r"set_predefined_options\(\.\.\.\)"):
        backend.set_options("com.example.Factory")
    with pytest.raises(TypeError, match="is None, True or False"):
        EmbeddedRocksDBStateBackend("yes")  # type: ignore[arg-type]
    with pytest.raises(ProgramError, match="takes a state backend"):
        env.set_state_backend("rocksdb")  # type: ignore[arg-type]
    assert isinstance(backend, StateBackend)


def test_storages_configure_what_they_say(env: StreamExecutionEnvironment) -> None:
    config = env.get_checkpoint_config()
    files = FileSystemCheckpointStorage("file:///checkpoints", 0)
    assert config.set_checkpoint_storage(files) is not None
    checkpoint = parsed(env).checkpoint
    assert (checkpoint.storage, checkpoint.directory) == (StorageKind.FILESYSTEM, "file:///checkpoints")
    assert checkpoint.inline_threshold == 0
    config.set_checkpoint_storage(JobManagerCheckpointStorage())
    checkpoint = parsed(env).checkpoint
    assert (checkpoint.storage, checkpoint.directory) == (StorageKind.JOBMANAGER, None)
    assert checkpoint.inline_threshold == 20 << 10


def test_getters_of_storages() -> None:
    files = FileSystemCheckpointStorage("/checkpoints")
    assert (files.get_checkpoint_path(), files.get_savepoint_path()) == ("/checkpoints", None)
    assert (files.get_min_file_size_threshold(), files.get_write_buffer_size()) == (20_480, 4096)
    assert FileSystemCheckpointStorage("/c", 5, 6).get_min_file_size_threshold() == 5
    assert FileSystemCheckpointStorage("/c", 5, 6).get_write_buffer_size() == 6
    memory = JobManagerCheckpointStorage()
    assert (memory.get_checkpoint_path(), memory.get_savepoint_path()) == (None, None)
    assert memory.get_max_state_size() == JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == 5_242_880


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("file:///var/checkpoints/", "file:/var/checkpoints"),
        ("file:/var/c", "file:/var/c"),
        ("/var/c/", "/var/c"),
        ("/", "/"),
        ("file:///", "file:/"),
        ("hdfs://name:8020/c//", "hdfs://name:8020/c"),
        ("s3://bucket", "s3://bucket"),
        ("s3://bucket/", "s3://bucket/"),
        ("s3://bucket/a b?#c", "s3://bucket/a b?#c"),
    ],
)
def test_a_path_is_told_as_flink_tells_it(given: str, told: str) -> None:
    storages = FileSystemCheckpointStorage(given), JobManagerCheckpointStorage(given)
    assert [storage.get_checkpoint_path() for storage in storages] == [told] * 2


def test_the_limit_of_checkpoints_in_memory_is_the_one_that_is_told() -> None:
    from holdfast.state.snapshot_files import DEFAULT_MEMORY_LIMIT

    assert JobManagerCheckpointStorage.DEFAULT_MAX_STATE_SIZE == DEFAULT_MEMORY_LIMIT


def test_what_storages_refuse(env: StreamExecutionEnvironment) -> None:
    with pytest.raises(ValueError, match="needs checkpoint_path"):
        FileSystemCheckpointStorage()
    with pytest.raises(ProgramError, match="0 to 1048576"):
        FileSystemCheckpointStorage("/c", 2 << 20)
    config, before = env.get_checkpoint_config(), env.get_configuration().to_dict()
    small, somewhere = JobManagerCheckpointStorage(max_state_size=1), JobManagerCheckpointStorage("/c")
    assert (small.get_max_state_size(), somewhere.get_checkpoint_path()) == (1, "/c")
    with pytest.raises(ProgramError, match=r"Use FileSystemCheckpointStorage\(path\) for more"):
        config.set_checkpoint_storage(small)
    with pytest.raises(ProgramError, match="keeps nothing in files"):
        config.set_checkpoint_storage(somewhere)
    assert env.get_configuration().to_dict() == before
    with pytest.raises(ProgramError, match="takes a storage"):
        env.get_checkpoint_config().set_checkpoint_storage("/c")  # type: ignore[arg-type]


def test_sizes_of_memory() -> None:
    size = MemorySize(bytes_size=(3 << 40) + 1)
    sizes = (size.get_bytes(), size.get_kibi_bytes(), size.get_mebi_bytes(), size.get_gibi_bytes())
    assert sizes == ((3 << 40) + 1, 3 << 30, 3 << 20, 3 << 10)
    assert size.get_tebi_bytes() == 3
    assert MemorySize(bytes_size=5) < MemorySize(bytes_size=6) <= MemorySize(bytes_size=6)
    assert MemorySize.of_mebi_bytes(1) == MemorySize(bytes_size=1 << 20)
    assert [str(MemorySize(bytes_size=n)) for n in (0, 3 << 20, 1_234_567)] == ["0 bytes", "3 mb", "1234567 bytes"]
    with pytest.raises(ProgramError, match="from 0 on"):
        MemorySize(bytes_size=-1)


def test_slot_sharing_groups(env: StreamExecutionEnvironment) -> None:
    builder = SlotSharingGroup.builder("heavy").set_cpu_cores(2).set_task_heap_memory_mb(64)
    group = builder.set_managed_memory_mb(1).set_task_off_heap_memory_mb(2).set_external_resource("gpu", 1).build()
    assert (group.get_name(), group.get_cpu_cores()) == ("heavy", 2.0)
    assert group.get_task_heap_memory() == MemorySize.of_mebi_bytes(64)
    assert (group.get_managed_memory(), group.get_task_off_heap_memory()) == (
        MemorySize.of_mebi_bytes(1),
        MemorySize.of_mebi_bytes(2),
    )
    assert group.get_external_resources() == {"gpu": 1.0}
    least = SlotSharingGroup.builder("a").set_cpu_cores(0.5).set_task_heap_memory_mb(20).build()
    assert least.get_managed_memory() == least.get_task_off_heap_memory() == MemorySize(bytes_size=0)
    assert SlotSharingGroup.builder("a").build().get_managed_memory() is None
    assert SlotSharingGroup.builder("a").build() == SlotSharingGroup.builder("a").build() != group
    assert hash(group) == hash(builder.build())
    assert env.register_slot_sharing_group(group) is env
    stream = env.from_collection([1]).map(lambda n: n).slot_sharing_group(group)
    assert stream.get_name() == "Map"
    env.set_default_local_parallelism(8)
    assert StreamExecutionEnvironment.get_execution_environment().get_default_local_parallelism() == 8
    with pytest.raises(ProgramError, match="needs both"):
        SlotSharingGroup.builder("a").set_external_resource("gpu", 1).build()
