"""Sources and sinks, under PyFlink's names."""

from __future__ import annotations

from holdfast.datastream.connectors.base import Sink, Source
from holdfast.datastream.connectors.file_system import (
    BucketAssigner,
    FileSink,
    FileSource,
    FileSourceBuilder,
    OutputFileConfig,
    RollingPolicy,
    StreamFormat,
)
from holdfast.datastream.connectors.number_seq import NumberSequenceSource, SequenceSource

__all__ = [
    "BucketAssigner",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "NumberSequenceSource",
    "OutputFileConfig",
    "RollingPolicy",
    "SequenceSource",
    "Sink",
    "Source",
    "StreamFormat",
]
