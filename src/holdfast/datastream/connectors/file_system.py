"""Sources and sinks of files."""

from __future__ import annotations

from holdfast.connectors.file_sink.compaction import (
    ConcatFileCompactor,
    FileCompactor,
    FileCompactStrategy,
    IdenticalFileCompactor,
)
from holdfast.connectors.file_sink.options import BucketAssigner, OutputFileConfig
from holdfast.connectors.file_sink.rolling import DefaultRollingPolicy, OnCheckpointRollingPolicy, RollingPolicy
from holdfast.connectors.file_sink.sink import FileSink
from holdfast.connectors.files.format import BAD_RECORD_TYPE
from holdfast.connectors.files.reader import FileOrder
from holdfast.connectors.files.source import FileSource, FileSourceBuilder, StreamFormat
from holdfast.coverage.answers import answer_missing_names as _answer_missing_names

__all__ = [
    "BAD_RECORD_TYPE",
    "BucketAssigner",
    "ConcatFileCompactor",
    "DefaultRollingPolicy",
    "FileCompactStrategy",
    "FileCompactor",
    "FileOrder",
    "FileSink",
    "FileSource",
    "FileSourceBuilder",
    "IdenticalFileCompactor",
    "OnCheckpointRollingPolicy",
    "OutputFileConfig",
    "RollingPolicy",
    "StreamFormat",
]

_answer_missing_names(__name__)
