"""What programs use from every part of Holdfast: types, rows, time, configuration, restart and watermark strategies."""

from __future__ import annotations

from holdfast.common.completable_future import CompletableFuture
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

__all__ = [
    "ByteArraySchema",
    "CompletableFuture",
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
