"""The tables of a benchmark as streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.data import COLUMNS, schema
from benchmarks.jobs import spark_streaming
from benchmarks.jobs.protocol import SPARK_SETTINGS, JobArguments
from holdfast.common import WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner, TimestampColumn
from holdfast.datastream import DataStream, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSource
from holdfast.spark.session import obtain_session

#: How often a live directory is listed.
DISCOVERY_MS = 100


class TimeColumn(TimestampAssigner):
    """The event time of a row is one of its columns."""

    def __init__(self, index: int) -> None:
        self._index = index

    def extract_timestamp(self, value: Any, record_timestamp: int) -> int:
        time: int = value[self._index]
        return time


@dataclass(frozen=True)
class Inputs:
    """What a program is built on."""

    env: StreamExecutionEnvironment
    arguments: JobArguments

    def table(self, name: str, by_column: bool = False) -> DataStream:
        """Rows of a table, with event time where it has one: by a function, as for PyFlink, or by column."""
        source = FileSource.parquet(str(self.arguments.data / name), schema(name), bounded=not self.arguments.live)
        if self.arguments.live:
            source = source.monitor_continuously(DISCOVERY_MS)
        strategy = WatermarkStrategy.no_watermarks()
        if "time" in COLUMNS[name]:
            assigner = TimestampColumn("time") if by_column else TimeColumn(COLUMNS[name].index("time"))
            strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(assigner)
        return self.env.from_source(source, strategy, name).uid(name)

    def stream(self, name: str) -> DataStream:
        """The rows as a stream of Spark's, an epoch in a micro-batch."""
        frame = spark_streaming.table(obtain_session(SPARK_SETTINGS), self.arguments, name)
        if "time" in COLUMNS[name]:
            frame = spark_streaming.timed(frame)
        return self.env.from_data_frame(frame, name).uid(name)
