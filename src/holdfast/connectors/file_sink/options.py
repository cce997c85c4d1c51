"""Names, sizes and folders of the files that a sink writes, with PyFlink's names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.errors import ConfigurationError
from holdfast.types.durations import milliseconds_of


@dataclass(frozen=True)
class OutputFileConfig:
    """The begin and the end of every file's name. Without a suffix it is the format's extension."""

    part_prefix: str = "part"
    part_suffix: str = ""

    def __post_init__(self) -> None:
        if not self.part_prefix or self.part_prefix[0] in "._" or "/" in self.part_prefix:
            raise ConfigurationError(
                f"The part prefix is {self.part_prefix!r}; it must not be empty, begin with '_' or '.' (readers leave "
                "such files out) or contain '/'."
            )
        if "/" in self.part_suffix:
            raise ConfigurationError(f"The part suffix {self.part_suffix!r} must not contain '/'.")

    @staticmethod
    def builder() -> OutputFileConfigBuilder:
        return OutputFileConfigBuilder()


class OutputFileConfigBuilder:
    def __init__(self) -> None:
        self._prefix = OutputFileConfig.part_prefix
        self._suffix = OutputFileConfig.part_suffix

    def with_part_prefix(self, prefix: str) -> OutputFileConfigBuilder:
        self._prefix = prefix
        return self

    def with_part_suffix(self, suffix: str) -> OutputFileConfigBuilder:
        self._suffix = suffix
        return self

    def build(self) -> OutputFileConfig:
        return OutputFileConfig(self._prefix, self._suffix)


@dataclass(frozen=True)
class RollingPolicy:
    """When a transaction goes on in another file. Every file ends with its epoch at the latest, so that only the
    size matters."""

    part_size: int | None = None

    def __post_init__(self) -> None:
        if self.part_size is not None and self.part_size <= 0:
            raise ConfigurationError(f"The part size is {self.part_size} bytes; it must be positive.")

    @staticmethod
    def default_rolling_policy(
        part_size: int = 128 << 20, rollover_interval: Any = 60_000, inactivity_interval: Any = 60_000
    ) -> RollingPolicy:
        """The intervals are checked and have no effect: a file never stays open longer than an epoch."""
        milliseconds_of(rollover_interval)
        milliseconds_of(inactivity_interval)
        return RollingPolicy(part_size)

    @staticmethod
    def on_checkpoint_rolling_policy() -> RollingPolicy:
        return RollingPolicy()


_PATTERN_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


@dataclass(frozen=True)
class BucketAssigner:
    """The folder below the sink's path. A transaction goes to one bucket: that of the moment when it began."""

    time_format: str | None = None
    zone: tzinfo | None = None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        return BucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """By processing time; the host's time zone unless one is named."""
        try:
            zone = None if timezone_id is None else ZoneInfo(timezone_id)
        except (ZoneInfoNotFoundError, ValueError) as cause:
            raise ConfigurationError(
                f"The time zone {timezone_id!r} is unknown; a name as 'Europe/Berlin' is expected."
            ) from cause
        return BucketAssigner(_translated(format_str), zone)

    def bucket(self, seconds: float) -> str:
        """The folder for a moment, empty for the sink's path itself."""
        return "" if self.time_format is None else datetime.fromtimestamp(seconds, self.zone).strftime(self.time_format)


def _translated(pattern: str) -> str:
    """Java's date pattern as one of strftime; only what makes sense in a folder's name."""

    def translate(match: re.Match[str]) -> str:
        letters = match.group()
        if letters not in _PATTERN_LETTERS:
            raise ConfigurationError(
                f"The bucket format {pattern!r} has {letters!r}; known are {', '.join(_PATTERN_LETTERS)} and "
                "characters that are not letters."
            )
        return _PATTERN_LETTERS[letters]

    translated = re.sub(r"([A-Za-z])\1*", translate, pattern.replace("%", "%%"))
    if not pattern or pattern[0] in "._/":
        raise ConfigurationError(f"The bucket format {pattern!r} must not be empty or begin with '.', '_' or '/'.")
    return translated


@dataclass(frozen=True)
class FileSinkOptions:
    file_config: OutputFileConfig = OutputFileConfig()
    rolling: RollingPolicy = RollingPolicy()
    buckets: BucketAssigner = BucketAssigner()
