"""Options of the RocksDB backend: Flink's keys, profiles with Flink's names."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

from holdfast.errors import ConfigurationError

PREFIX = "state.backend.rocksdb."


@dataclass(frozen=True, slots=True)
class Profile:
    """What a kind of disk asks for. Sizes in bytes.

    A database is closed when another process takes it over, and a compaction that runs then is lost. Profiles for
    solid state disks therefore keep single compactions small; those for spinning disks need long sequential reads.
    """

    background_jobs: int
    file_size: int
    level_base: int
    block_size: int
    readahead: int


PROFILES: dict[str, Profile] = {
    "DEFAULT": Profile(2, 8 << 20, 32 << 20, 4 << 10, 512 << 10),
    "FLASH_SSD_OPTIMIZED": Profile(4, 16 << 20, 64 << 20, 4 << 10, 512 << 10),
    "SPINNING_DISK_OPTIMIZED": Profile(4, 64 << 20, 256 << 20, 32 << 10, 4 << 20),
    "SPINNING_DISK_OPTIMIZED_HIGH_MEM": Profile(4, 256 << 20, 1 << 30, 128 << 10, 4 << 20),
}

#: The fields that are texts, and what they may be.
_TEXTS: dict[str, Collection[str]] = {
    "profile": PROFILES,
    "compaction": ("LEVEL", "UNIVERSAL"),
    "snapshots": ("NATIVE", "CHANGED_KEYS"),
}

#: Configuration keys behind the prefix, and the fields that they set.
_KEYS = {
    "predefined-options": "profile",
    "memory.managed": "managed",
    "memory.fixed-per-slot": "per_slot",
    "memory.write-buffer-ratio": "write_buffer_ratio",
    "memory.partitioned-index-filters": "partitioned",
    "block.cache-size": "cache_size",
    "block.blocksize": "block_size",
    "writebuffer.size": "write_buffer_size",
    "writebuffer.count": "write_buffer_count",
    "use-bloom-filter": "bloom_filter",
    "bloom-filter.bits-per-key": "bloom_bits",
    "thread.num": "background_jobs",
    "files.open": "open_files",
    "compaction.level.target-file-size-base": "file_size",
    "compaction.level.max-size-level-base": "level_base",
    "compaction.style": "compaction",
    "snapshot-strategy": "snapshots",
    "cache-limit": "cache_limit",
}


@dataclass(frozen=True, slots=True)
class RocksDbOptions:
    """Sizes in bytes; None is what the profile says. ``common/backend_options.py`` documents every one."""

    profile: str = "DEFAULT"
    managed: bool = True
    per_slot: int = 128 << 20
    write_buffer_ratio: float = 0.5
    partitioned: bool = False
    cache_size: int = 8 << 20
    block_size: int | None = None
    write_buffer_size: int = 64 << 20
    write_buffer_count: int = 2
    bloom_filter: bool = True
    bloom_bits: float = 10.0
    background_jobs: int | None = None
    open_files: int = 256
    file_size: int | None = None
    level_base: int | None = None
    #: LEVEL or UNIVERSAL.
    compaction: str = "LEVEL"
    #: NATIVE or CHANGED_KEYS.
    snapshots: str = "NATIVE"
    cache_limit: int = 200_000

    @classmethod
    def from_mapping(cls, options: Mapping[str, Any]) -> RocksDbOptions:
        """Take the backend's values out of a job's configuration, which has read and checked them; ignore other
        keys.
        """
        values = {field: options[PREFIX + key] for key, field in _KEYS.items() if PREFIX + key in options}
        for field in fields(cls):
            value = values.get(field.name)
            if isinstance(value, str) and field.name not in _TEXTS:
                raise ConfigurationError(
                    f"The option '{_key_of(field.name)}' is the text {value!r}; expected a number of bytes, a number, "
                    f"True or False. Texts such as '64 mb' are read by holdfast.common.Configuration."
                )
        made = cls(**values)
        for name, known in _TEXTS.items():
            if getattr(made, name) not in known:
                raise ConfigurationError(
                    f"The option '{_key_of(name)}' is {getattr(made, name)!r}; expected one of {', '.join(known)}."
                )
        return made

    def as_mapping(self) -> dict[str, Any]:
        set_values = {key: getattr(self, field) for key, field in _KEYS.items()}
        return {PREFIX + key: value for key, value in set_values.items() if value is not None}

    @property
    def native_snapshots(self) -> bool:
        return self.snapshots == "NATIVE"

    def tuned(self) -> Profile:
        """The profile, with what was set by itself in the place of what it says."""
        chosen = PROFILES[self.profile]
        return Profile(
            self.background_jobs or chosen.background_jobs,
            self.file_size or chosen.file_size,
            self.level_base or chosen.level_base,
            self.block_size or chosen.block_size,
            chosen.readahead,
        )


def _key_of(field: str) -> str:
    return PREFIX + next(key for key, name in _KEYS.items() if name == field)
