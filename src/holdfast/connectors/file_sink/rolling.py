"""When a file of a sink ends and the next one begins, with PyFlink's names."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ConfigurationError
from holdfast.types.durations import milliseconds_of

_DEFAULT_PART_SIZE = 128 << 20
_DEFAULT_INTERVAL_MS = 60_000


class RollingPolicy(SaysWhatToUse, ABC):
    """Decides when a file ends: asked while an epoch runs whether the open file ends now, and at its end whether the
    rows that wait in staging go out with it. Frozen: it travels.
    """

    #: No file is made larger by rows, or by other files, once it has so many bytes; None for no limit.
    part_size: int | None = None
    #: Whether files may wait at all.
    holds: bool = True

    @abstractmethod
    def ends_part(self, size: int, age_ms: int) -> bool:
        """Whether the open file is large or old enough."""

    @abstractmethod
    def publishes(self, size: int, age_ms: int, idle_ms: int) -> bool:
        """Whether what waits in a bucket, of this size, since this time and without rows for this time, is
        published."""

    @staticmethod
    def default_rolling_policy(
        part_size: int = _DEFAULT_PART_SIZE,
        rollover_interval: Any = _DEFAULT_INTERVAL_MS,
        inactivity_interval: Any = _DEFAULT_INTERVAL_MS,
    ) -> DefaultRollingPolicy:
        return DefaultRollingPolicy(part_size, milliseconds_of(rollover_interval), milliseconds_of(inactivity_interval))

    @staticmethod
    def on_checkpoint_rolling_policy() -> OnCheckpointRollingPolicy:
        return OnCheckpointRollingPolicy()


@dataclass(frozen=True)
class DefaultRollingPolicy(RollingPolicy):
    """A file goes on over epochs and checkpoints until it is large or old enough, or had no rows for some time."""

    part_size: int = _DEFAULT_PART_SIZE
    rollover_interval_ms: int = _DEFAULT_INTERVAL_MS
    inactivity_interval_ms: int = _DEFAULT_INTERVAL_MS

    def __post_init__(self) -> None:
        if self.part_size <= 0:
            raise ConfigurationError(f"The part size is {self.part_size} bytes; it must be positive.")

    def ends_part(self, size: int, age_ms: int) -> bool:
        return size >= self.part_size or age_ms >= self.rollover_interval_ms

    def publishes(self, size: int, age_ms: int, idle_ms: int) -> bool:
        return self.ends_part(size, age_ms) or idle_ms >= self.inactivity_interval_ms


@dataclass(frozen=True)
class OnCheckpointRollingPolicy(RollingPolicy):
    """Every file ends with its epoch, and appears with the next checkpoint."""

    holds = False

    def ends_part(self, size: int, age_ms: int) -> bool:
        return False

    def publishes(self, size: int, age_ms: int, idle_ms: int) -> bool:
        return True
