"""What programs use from every part of Holdfast: types, rows, time, configuration, restart and watermark strategies."""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from holdfast.common.completable_future import CompletableFuture
from holdfast.common.config_options import ConfigOption, ConfigOptions
from holdfast.common.configuration import Configuration
from holdfast.common.execution_config import ExecutionConfig
from holdfast.common.job_client import JobClient
from holdfast.common.job_execution_result import JobExecutionResult
from holdfast.common.job_id import JobID
from holdfast.common.job_status import JobStatus
from holdfast.common.restart_strategy import RestartStrategies, RestartStrategyConfiguration
from holdfast.common.serialization import (
    ByteArraySchema,
    DeserializationSchema,
    Encoder,
    SerializationSchema,
    SimpleStringSchema,
)
from holdfast.common.time import Duration, Instant, Time
from holdfast.common.typeinfo import TypeInformation, Types
from holdfast.common.types import Row, RowKind
from holdfast.common.watermark_strategy import TimestampAssigner, TimestampColumn, WatermarkStrategy
from holdfast.coverage.answers import missing_name as _missing_name

if _TYPE_CHECKING:
    from holdfast.connectors.formats.avro_rows import AvroRowDeserializationSchema as AvroRowDeserializationSchema
    from holdfast.connectors.formats.avro_rows import AvroRowSerializationSchema as AvroRowSerializationSchema
    from holdfast.connectors.formats.csv_rows import CsvRowDeserializationSchema as CsvRowDeserializationSchema
    from holdfast.connectors.formats.csv_rows import CsvRowSerializationSchema as CsvRowSerializationSchema
    from holdfast.connectors.formats.json_rows import JsonRowDeserializationSchema as JsonRowDeserializationSchema
    from holdfast.connectors.formats.json_rows import JsonRowSerializationSchema as JsonRowSerializationSchema

__all__ = [
    "ByteArraySchema",
    "CompletableFuture",
    "ConfigOption",
    "ConfigOptions",
    "Configuration",
    "DeserializationSchema",
    "Duration",
    "Encoder",
    "ExecutionConfig",
    "Instant",
    "JobClient",
    "JobExecutionResult",
    "JobID",
    "JobStatus",
    "RestartStrategies",
    "RestartStrategyConfiguration",
    "Row",
    "RowKind",
    "SerializationSchema",
    "SimpleStringSchema",
    "Time",
    "TimestampAssigner",
    "TimestampColumn",
    "TypeInformation",
    "Types",
    "WatermarkStrategy",
]

#: Where PyFlink has them too. They are loaded when they are asked for: few programs need them.
_FORMATS = {
    f"{name}Row{direction}Schema": f"holdfast.connectors.formats.{name.lower()}_rows"
    for name in ("Avro", "Csv", "Json")
    for direction in ("Serialization", "Deserialization")
}

if not _TYPE_CHECKING:

    def __getattr__(name: str) -> _Any:
        return getattr(_import_module(_FORMATS[name]), name) if name in _FORMATS else _missing_name(__name__, name)
