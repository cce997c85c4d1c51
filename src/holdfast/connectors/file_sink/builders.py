"""PyFlink's builders of file sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from holdfast.connectors.file_sink.compaction import FileCompactor, FileCompactStrategy
from holdfast.connectors.file_sink.options import BucketAssigner, OutputFileConfig
from holdfast.connectors.file_sink.rolling import OnCheckpointRollingPolicy, RollingPolicy
from holdfast.coverage.answers import note_accepted

if TYPE_CHECKING:
    from holdfast.connectors.file_sink.sink import FileSink


class BaseBuilder:
    """A sink that is not yet complete. Each method gives another builder."""

    def __init__(self, sink: FileSink) -> None:
        self._sink = sink

    def with_output_file_config(self, output_file_config: OutputFileConfig) -> Self:
        return type(self)(self._sink.with_output_file_config(output_file_config))

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
        return type(self)(self._sink.with_rolling_policy(rolling_policy))

    def with_bucket_assigner(self, bucket_assigner: BucketAssigner) -> Self:
        return type(self)(self._sink.with_bucket_assigner(bucket_assigner))

    def with_bucket_check_interval(self, interval: int) -> Self:
        """No effect: every file is looked at when an epoch ends, and epochs follow each other without rows too."""
        note_accepted(f"FileSink.{type(self).__name__}.with_bucket_check_interval")
        return self

    def enable_compact(self, strategy: FileCompactStrategy, compactor: FileCompactor | None = None) -> Self:
        return type(self)(self._sink.enable_compact(strategy, compactor))

    def disable_compact(self) -> Self:
        return type(self)(self._sink.disable_compact())

    def with_success_markers(self, delay: Any) -> Self:
        return type(self)(self._sink.with_success_markers(delay))

    def build(self) -> FileSink:
        return self._sink


class RowFormatBuilder(BaseBuilder):
    """A sink of lines."""


class BulkFormatBuilder(BaseBuilder):
    """A sink of another format. Its files end at checkpoints, as in Flink."""

    def with_rolling_policy(self, rolling_policy: RollingPolicy) -> Self:
        if not isinstance(rolling_policy, OnCheckpointRollingPolicy):
            raise ValueError("rolling_policy should be OnCheckpointRollingPolicy for bulk format")
        return super().with_rolling_policy(rolling_policy)
