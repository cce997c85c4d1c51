"""How long state lives, with PyFlink's names."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ProgramError
from holdfast.types.durations import milliseconds_of


class _UpdateType(Enum):
    """Which accesses make state live on."""

    #: State does not expire: as without a time to live.
    Disabled = 0
    OnCreateAndWrite = 1
    OnReadAndWrite = 2


class _StateVisibility(Enum):
    """Whether state can be seen between the moment it expires and the moment it is removed."""

    ReturnExpiredIfNotCleanedUp = 0
    NeverReturnExpired = 1


class _TtlTimeCharacteristic(Enum):
    ProcessingTime = 0


@dataclass(frozen=True)
class _IncrementalCleanupStrategy:
    cleanup_size: int
    for_every_record: bool

    def get_cleanup_size(self) -> int:
        return self.cleanup_size

    def run_cleanup_for_every_record(self) -> bool:
        return self.for_every_record


@dataclass(frozen=True)
class _RocksdbCompactFilterCleanupStrategy:
    query_time_after_num_entries: int
    periodic_compaction_time: Any = None

    def get_query_time_after_num_entries(self) -> int:
        return self.query_time_after_num_entries

    def get_periodic_compaction_time(self) -> Any:
        return self.periodic_compaction_time


_DEFAULT_INCREMENTAL = _IncrementalCleanupStrategy(5, False)
_DEFAULT_COMPACT_FILTER = _RocksdbCompactFilterCleanupStrategy(1000)


@dataclass(frozen=True)
class _CleanupStrategies(SaysWhatToUse, pyflink_name="StateTtlConfig.CleanupStrategies"):
    """When state that has expired and is not read is removed. The getters give Flink's defaults where nothing was set;
    ``state/ttl_cleanup.py`` says what Holdfast makes of them.
    """

    IncrementalCleanupStrategy = _IncrementalCleanupStrategy
    RocksdbCompactFilterCleanupStrategy = _RocksdbCompactFilterCleanupStrategy

    incremental: _IncrementalCleanupStrategy | None = None
    compact_filter: _RocksdbCompactFilterCleanupStrategy | None = None
    full_snapshot: bool = False
    background: bool = True

    def is_cleanup_in_background(self) -> bool:
        return self.background

    def in_full_snapshot(self) -> bool:
        return self.full_snapshot

    def get_incremental_cleanup_strategy(self) -> _IncrementalCleanupStrategy | None:
        return self.incremental or (_DEFAULT_INCREMENTAL if self.background else None)

    def get_rocksdb_compact_filter_cleanup_strategy(self) -> _RocksdbCompactFilterCleanupStrategy | None:
        return self.compact_filter or (_DEFAULT_COMPACT_FILTER if self.background else None)


@dataclass(frozen=True)
class StateTtlConfig:
    """The time to live of a state, for ``StateDescriptor.enable_time_to_live``. Made by ``new_builder``.

    It is not part of snapshots: what the program says now counts, also for state that is restored.
    """

    UpdateType = _UpdateType
    StateVisibility = _StateVisibility
    TtlTimeCharacteristic = _TtlTimeCharacteristic
    CleanupStrategies = _CleanupStrategies
    Builder: ClassVar[type[StateTtlConfigBuilder]]

    #: A Time, or whatever else says a length of time.
    ttl: Any
    update_type: _UpdateType = _UpdateType.OnCreateAndWrite
    state_visibility: _StateVisibility = _StateVisibility.NeverReturnExpired
    ttl_time_characteristic: _TtlTimeCharacteristic = _TtlTimeCharacteristic.ProcessingTime
    cleanup_strategies: _CleanupStrategies = field(default_factory=_CleanupStrategies)

    def __post_init__(self) -> None:
        if self.milliseconds <= 0:
            raise ProgramError(f"A time to live of {self.ttl!r} was given; it must be longer than 0 milliseconds.")

    @staticmethod
    def new_builder(ttl: Any) -> StateTtlConfigBuilder:
        return StateTtlConfigBuilder(ttl)

    def get_update_type(self) -> _UpdateType:
        return self.update_type

    def get_state_visibility(self) -> _StateVisibility:
        return self.state_visibility

    def get_ttl(self) -> Any:
        return self.ttl

    def get_ttl_time_characteristic(self) -> _TtlTimeCharacteristic:
        return self.ttl_time_characteristic

    def get_cleanup_strategies(self) -> _CleanupStrategies:
        return self.cleanup_strategies

    def is_enabled(self) -> bool:
        return self.update_type is not _UpdateType.Disabled

    @property
    def milliseconds(self) -> int:
        return milliseconds_of(self.ttl)


class StateTtlConfigBuilder:
    """Each method sets one thing and gives the builder back."""

    def __init__(self, ttl: Any) -> None:
        self._ttl = ttl
        self._update_type = _UpdateType.OnCreateAndWrite
        self._visibility = _StateVisibility.NeverReturnExpired
        self._characteristic = _TtlTimeCharacteristic.ProcessingTime
        self._cleanup: dict[str, Any] = {}

    def set_ttl(self, ttl: Any) -> StateTtlConfigBuilder:
        self._ttl = ttl
        return self

    def set_update_type(self, update_type: _UpdateType) -> StateTtlConfigBuilder:
        self._update_type = update_type
        return self

    def update_ttl_on_create_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(_UpdateType.OnCreateAndWrite)

    def update_ttl_on_read_and_write(self) -> StateTtlConfigBuilder:
        return self.set_update_type(_UpdateType.OnReadAndWrite)

    def set_state_visibility(self, state_visibility: _StateVisibility) -> StateTtlConfigBuilder:
        self._visibility = state_visibility
        return self

    def return_expired_if_not_cleaned_up(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(_StateVisibility.ReturnExpiredIfNotCleanedUp)

    def never_return_expired(self) -> StateTtlConfigBuilder:
        return self.set_state_visibility(_StateVisibility.NeverReturnExpired)

    def set_ttl_time_characteristic(self, ttl_time_characteristic: _TtlTimeCharacteristic) -> StateTtlConfigBuilder:
        self._characteristic = ttl_time_characteristic
        return self

    def use_processing_time(self) -> StateTtlConfigBuilder:
        return self.set_ttl_time_characteristic(_TtlTimeCharacteristic.ProcessingTime)

    def cleanup_full_snapshot(self) -> StateTtlConfigBuilder:
        """Leave what has expired out of full images of the state. The local store is not changed by it."""
        self._cleanup["full_snapshot"] = True
        return self

    def cleanup_incrementally(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> StateTtlConfigBuilder:
        """Check so many entries for every access to the state, or also for every row. They are checked together, at the
        end of the epoch.
        """
        if cleanup_size < 1:
            raise ProgramError(f"cleanup_incrementally was given {cleanup_size} entries to check; give at least 1.")
        self._cleanup["incremental"] = _IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
        return self

    def cleanup_in_rocksdb_compact_filter(
        self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
    ) -> StateTtlConfigBuilder:
        """Walk over the state in the background, with any backend; both numbers are kept and have no effect."""
        strategy = _RocksdbCompactFilterCleanupStrategy(query_time_after_num_entries, periodic_compaction_time)
        self._cleanup["compact_filter"] = strategy
        return self

    def disable_cleanup_in_background(self) -> StateTtlConfigBuilder:
        """Do not walk over the state unless ``cleanup_incrementally`` or ``cleanup_in_rocksdb_compact_filter`` says
        so.
        """
        self._cleanup["background"] = False
        return self

    def build(self) -> StateTtlConfig:
        strategies = _CleanupStrategies(**self._cleanup)
        return StateTtlConfig(self._ttl, self._update_type, self._visibility, self._characteristic, strategies)


StateTtlConfig.Builder = StateTtlConfigBuilder
