"""From the backend's options to RocksDB's."""

from __future__ import annotations

from typing import Any

from holdfast.state.rocksdb.library import load_engine
from holdfast.state.rocksdb.memory import Memory
from holdfast.state.rocksdb.options import RocksDbOptions

#: Level 0 files that start a compaction. Every hand-over writes one, mostly small, so more than RocksDB's 4.
LEVEL_ZERO_TRIGGER = 8
#: Level 0 files at which RocksDB slows down writes.
LEVEL_ZERO_LIMIT = 24
#: The list of files and its changes begin anew at this size: every snapshot stores it.
_MANIFEST_BYTES = 512 << 10


def database_options(settings: RocksDbOptions, memory: Memory) -> Any:
    """Options to open or create a database with."""
    engine, profile = load_engine(), settings.tuned()
    options = engine.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(_table_options(settings, memory))
    if memory.buffers is not None:
        options.set_write_buffer_manager(memory.buffers)
    options.set_write_buffer_size(memory.write_buffer_size)
    options.set_max_write_buffer_number(settings.write_buffer_count)
    options.set_max_background_jobs(profile.background_jobs)
    options.set_level_compaction_dynamic_level_bytes(True)
    if settings.compaction == "UNIVERSAL":
        options.set_compaction_style(engine.DBCompactionStyle.universal())
    options.set_target_file_size_base(profile.file_size)
    options.set_max_bytes_for_level_base(profile.level_base)
    options.set_level_zero_file_num_compaction_trigger(LEVEL_ZERO_TRIGGER)
    options.set_level_zero_slowdown_writes_trigger(LEVEL_ZERO_LIMIT)
    options.set_compaction_readahead_size(profile.readahead)
    compression = engine.DBCompressionType
    options.set_compression_per_level([compression.none(), compression.none(), *[compression.lz4()] * 5])
    _open_fast(options, settings)
    return options


def _table_options(settings: RocksDbOptions, memory: Memory) -> Any:
    engine = load_engine()
    table = engine.BlockBasedOptions()
    table.set_block_cache(memory.cache)
    table.set_block_size(settings.tuned().block_size)
    table.set_cache_index_and_filter_blocks(True)
    table.set_pin_l0_filter_and_index_blocks_in_cache(True)
    if settings.bloom_filter:
        table.set_bloom_filter(settings.bloom_bits, False)
    if settings.partitioned:
        table.set_index_type(engine.BlockBasedIndexType.two_level_index_search())
        table.set_partition_filters(settings.bloom_filter)
        table.set_pin_top_level_index_and_filter(True)
    return table


def _open_fast(options: Any, settings: RocksDbOptions) -> None:
    """Databases are opened in the middle of a job: with a limit of open files, RocksDB opens only a few of them at
    once, and it need not look for statistics.
    """
    options.set_max_open_files(settings.open_files)
    options.set_skip_stats_update_on_db_open(True)
    options.set_stats_persist_period_sec(0)
    options.set_stats_dump_period_sec(0)
    options.set_manifest_preallocation_size(64 << 10)
    options.set_max_manifest_file_size(_MANIFEST_BYTES)
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(1 << 20)
