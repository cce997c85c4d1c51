"""The program of the demo, as a user would write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, JobClient, RestartStrategies, Types, WatermarkStrategy
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor
from holdfast.demo.ending_source import EndingFileSource
from holdfast.demo.events import END_MARKER, READINGS_PER_RESULT, RESULT_SCHEMA, SCHEMA


class SensorAverages(FlatMapFunction):
    """Count and average of all readings of a sensor so far."""

    def open(self, runtime_context: RuntimeContext) -> None:
        descriptor = ValueStateDescriptor("count and sum", Types.TUPLE([Types.LONG(), Types.LONG()]))
        self.totals = runtime_context.get_state(descriptor)

    def flat_map(self, value: Any) -> Iterator[tuple[int, int, float]]:
        count, total = self.totals.value() or (0, 0)
        count, total = count + 1, total + value.reading
        self.totals.update((count, total))
        if count % READINGS_PER_RESULT == 0:
            yield value.sensor, count, total / count


@dataclass(frozen=True)
class Directories:
    """Where the demo keeps its files."""

    root: Path

    @property
    def input(self) -> Path:
        return self.root / "input"

    @property
    def output(self) -> Path:
        return self.root / "output"

    @property
    def checkpoints(self) -> Path:
        return self.root / "checkpoints"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def log(self) -> Path:
        return self.root / "spark.log"

    def make(self) -> None:
        for directory in (self.input, self.output, self.checkpoints, self.state):
            directory.mkdir(parents=True, exist_ok=True)


def start_job(directories: Directories, backend: str) -> JobClient:
    """Start Spark on two cores and the job on it; returns when it runs."""
    configuration = Configuration.from_dict(
        {
            "spark.master": "local[2]",
            "spark.log.level": "ERROR",
            "state.backend.type": backend,
            "execution.checkpointing.dir": directories.checkpoints,
            "holdfast.state.local-dir": directories.state,
            "holdfast.epoch.max-time": "500 ms",
            "holdfast.epoch.idle-wait": "100 ms",
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    env.set_parallelism(2)
    env.enable_checkpointing(1_000)
    env.set_restart_strategy(RestartStrategies.fixed_delay_restart(3, 1_000))

    events = env.from_source(
        EndingFileSource(directories.input, SCHEMA, END_MARKER), WatermarkStrategy.no_watermarks(), "sensor events"
    )
    averages = events.key_by("sensor").flat_map(SensorAverages(), RESULT_SCHEMA).name("averages")
    averages.sink_to(FileSink.parquet(str(directories.output))).name("results")
    return env.execute_async("sensor averages")
