"""Sources and sinks of files."""

from __future__ import annotations

from holdfast.connectors.file_sink.options import BucketAssigner, OutputFileConfig, RollingPolicy
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.connectors.files.source import FileSource, FileSourceBuilder, StreamFormat

__all__ = [
    "BucketAssigner",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]
