"""Names and folders of the files that a sink writes, with PyFlink's names."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.connectors.file_sink.compaction import Compaction
from holdfast.connectors.file_sink.rolling import OnCheckpointRollingPolicy, RollingPolicy
from holdfast.coverage.answers import SaysWhatToUse
from holdfast.errors import ConfigurationError


@dataclass(frozen=True)
class OutputFileConfig(SaysWhatToUse):
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

    def get_part_prefix(self) -> str:
        return self.part_prefix

    def get_part_suffix(self) -> str:
        return self.part_suffix

    class OutputFileConfigBuilder:
        def __init__(self) -> None:
            self.part_prefix = "part"
            self.part_suffix = ""

        def with_part_prefix(self, prefix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_prefix = prefix
            return self

        def with_part_suffix(self, suffix: str) -> OutputFileConfig.OutputFileConfigBuilder:
            self.part_suffix = suffix
            return self

        def build(self) -> OutputFileConfig:
            return OutputFileConfig(self.part_prefix, self.part_suffix)

    @staticmethod
    def builder() -> OutputFileConfig.OutputFileConfigBuilder:
        return OutputFileConfig.OutputFileConfigBuilder()


_PATTERN_LETTERS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


@dataclass(frozen=True)
class BucketAssigner(SaysWhatToUse):
    """The folder below the sink's path, by the moment when rows arrive."""

    time_format: str | None = None
    zone: tzinfo | None = None

    @staticmethod
    def base_path_bucket_assigner() -> BucketAssigner:
        return BucketAssigner()

    @staticmethod
    def date_time_bucket_assigner(format_str: str = "yyyy-MM-dd--HH", timezone_id: str | None = None) -> BucketAssigner:
        """Buckets by processing time, in the host's time zone unless one is named."""
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
    """What the methods of a sink that begin with ``with_`` change."""

    file_config: OutputFileConfig = OutputFileConfig()
    rolling: RollingPolicy = field(default_factory=OnCheckpointRollingPolicy)
    buckets: BucketAssigner = BucketAssigner()
    #: Names of the columns whose values are folders.
    partition_columns: tuple[str, ...] = ()
    compaction: Compaction | None = None
    #: A bucket without new rows for so long is marked as finished; None: nothing is marked.
    success_delay_ms: int | None = None
    #: Seconds since 1970.
    clock: Callable[[], float] = time.time

    def now_ms(self) -> int:
        return round(self.clock() * 1000)
