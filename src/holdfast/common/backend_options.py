"""Options of the state backends, with Flink's keys where Flink has them."""

from __future__ import annotations

from typing import Any

from holdfast.common.option_types import BOOLEAN, FLOAT, INTEGER, MEMORY, Option, choice

_ROCKSDB = "state.backend.rocksdb."
_MEMORY = _ROCKSDB + "memory."
_LEVEL = _ROCKSDB + "compaction.level."
_BY_PROFILE = "by profile"

_PROFILES = ("DEFAULT", "SPINNING_DISK_OPTIMIZED", "SPINNING_DISK_OPTIMIZED_HIGH_MEM", "FLASH_SSD_OPTIMIZED")

ROCKSDB: tuple[Option[Any], ...] = (
    Option(
        _ROCKSDB + "predefined-options",
        choice({name: name for name in _PROFILES}),
        "DEFAULT",
        "What RocksDB is tuned for. It decides the sizes of files, levels and blocks and the background threads; each "
        "can also be set by itself.",
    ),
    Option(
        _MEMORY + "managed",
        BOOLEAN,
        True,
        "All databases of a Python worker share one block cache and one bound of write buffers within "
        "`memory.fixed-per-slot`. If false, every database has a cache and write buffers of its own.",
    ),
    Option(
        _MEMORY + "fixed-per-slot",
        MEMORY,
        128 << 20,
        "Memory of RocksDB in a Python worker: block cache with index and filters, and write buffers. An executor "
        "takes this times its task slots. Unlike in Flink it has a default, as Spark has no managed memory to take "
        "a share of.",
        least=8 << 20,
    ),
    Option(
        _MEMORY + "write-buffer-ratio",
        FLOAT,
        0.5,
        "Part of the memory that is meant for write buffers.",
        least=0.05,
        most=0.95,
    ),
    Option(
        _MEMORY + "partitioned-index-filters",
        BOOLEAN,
        False,
        "Keep index and filters in parts, so that little memory is not filled by those of large files.",
    ),
    Option(
        _ROCKSDB + "block.cache-size",
        MEMORY,
        8 << 20,
        "Block cache of every database when `memory.managed` is false.",
        least=1 << 20,
    ),
    Option(_ROCKSDB + "block.blocksize", MEMORY, None, "Size of data blocks.", least=1 << 10, default_text=_BY_PROFILE),
    Option(
        _ROCKSDB + "writebuffer.size",
        MEMORY,
        64 << 20,
        "Size of one write buffer; with managed memory at most half of what write buffers have together.",
        least=1 << 20,
    ),
    Option(_ROCKSDB + "writebuffer.count", INTEGER, 2, "Write buffers that a database may fill up.", least=2),
    Option(
        _ROCKSDB + "use-bloom-filter",
        BOOLEAN,
        True,
        "Files have filters that say which keys they do not hold. Unlike in Flink on by default: what is new must be "
        "looked up too, for the record of its epoch.",
    ),
    Option(_ROCKSDB + "bloom-filter.bits-per-key", FLOAT, 10.0, "Size of the filters, in bits for each key.", least=1),
    Option(
        _ROCKSDB + "thread.num",
        INTEGER,
        None,
        "Flushes and compactions of a database that may run at the same time.",
        least=1,
        default_text=_BY_PROFILE,
    ),
    Option(
        _ROCKSDB + "files.open",
        INTEGER,
        256,
        "Files that a database keeps open, -1 being all. Unlike in Flink limited: a database that moves to another "
        "worker is opened within an epoch, and would open all of them there.",
        least=-1,
    ),
    Option(
        _LEVEL + "target-file-size-base",
        MEMORY,
        None,
        "Size of the files that a compaction writes.",
        least=1 << 20,
        default_text=_BY_PROFILE,
    ),
    Option(
        _LEVEL + "max-size-level-base",
        MEMORY,
        None,
        "Size of the first level below the newest files.",
        least=1 << 20,
        default_text=_BY_PROFILE,
    ),
    Option(
        _ROCKSDB + "compaction.style",
        choice({name: name for name in ("LEVEL", "UNIVERSAL")}),
        "LEVEL",
        "How RocksDB merges files. `UNIVERSAL` writes less, so that incremental checkpoints of changes all over the "
        "state store less; it takes up to twice the disk, and single merges are as large as the state.",
    ),
    Option(
        _ROCKSDB + "snapshot-strategy",
        choice({name: name for name in ("NATIVE", "CHANGED_KEYS")}),
        "NATIVE",
        "What a checkpoint stores. `NATIVE`: the files of the database, incrementally those that the last completed "
        "checkpoint does not hold. `CHANGED_KEYS`: entries, incrementally those that changed, as the other backends "
        "do.",
    ),
    Option(
        _ROCKSDB + "cache-limit",
        INTEGER,
        200_000,
        "Entries that the cache of live objects keeps between epochs, per subtask.",
        least=1,
    ),
)

#: Keys of Flink for its RocksDB backend, which have nothing to act on here.
ROCKSDB_WITHOUT_EFFECT: dict[str, str] = {
    _ROCKSDB + "timer-service.factory": "`ROCKSDB` and `HEAP` are the same: timers are stored with an index by time, "
    "and those that are due next are read ahead into memory",
    _ROCKSDB + "timer-service.cache-size": "see `timer-service.factory`",
    _ROCKSDB + "localdir": "see `holdfast.state.local-dir`",
    _ROCKSDB + "options-factory": "RocksDB is configured by options only",
    _ROCKSDB + "checkpoint.transfer.thread.num": "a subtask writes its files one after the other",
    _ROCKSDB + "write-batch-size": "an epoch is written in one batch, or in batches of a few MB",
    _ROCKSDB + "memory.fixed-per-tm": "see `memory.fixed-per-slot`; workers of an executor are processes of their own",
    _ROCKSDB + "memory.high-prio-pool-ratio": "index and filters of new files are pinned in the cache",
    _ROCKSDB + "block.metadata-blocksize": "RocksDB's own default is used",
    _ROCKSDB + "bloom-filter.block-based-mode": "RocksDB has no such filters any more",
    _ROCKSDB + "writebuffer.number-to-merge": "write buffers are written one by one",
    _ROCKSDB + "compaction.level.use-dynamic-size": "always on",
    _ROCKSDB + "compression.per.level": "none for new files, LZ4 for older ones",
    _ROCKSDB + "log.level": "RocksDB's own log is kept small, beside the database",
    _ROCKSDB + "log.dir": "see `log.level`",
    _ROCKSDB + "log.file-num": "see `log.level`",
    _ROCKSDB + "log.max-file-size": "see `log.level`",
}
