"""Jobs on PyFlink in process mode, in a mini cluster of this process with two slots. The variant is the state backend;
bundles and caches are as they come.

Files are read and parsed in the JVM, by the CSV format that PyFlink's package has.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyflink.common import Configuration, Row, Time, Types
from pyflink.datastream import DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import Sink
from pyflink.datastream.functions import FilterFunction, FlatMapFunction, MapFunction, RuntimeContext
from pyflink.datastream.state import StateTtlConfig, ValueStateDescriptor
from pyflink.java_gateway import get_gateway
from pyflink.table import DataTypes, Schema, StreamTableEnvironment, TableDescriptor

from benchmarks.data import COLUMNS
from benchmarks.jobs import pyflink_windows
from benchmarks.jobs.checks import CHECKED
from benchmarks.jobs.protocol import PARALLELISM, JobArguments, Marks, Tally, outcome_of_marks

BACKENDS = {"heap": "hashmap", "rocksdb": "rocksdb"}
PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])
TOTALS = Types.TUPLE([Types.LONG()] * 5)


def marks_of(arguments: JobArguments, context: RuntimeContext) -> Marks:
    return Marks(arguments.scratch, context.get_index_of_this_subtask(), arguments.epoch_rows // 16)


class CountWithKeyedState(FlatMapFunction):
    """State (sum, count); every third value of a key emits ``sum // count`` and clears it."""

    def __init__(self, arguments: JobArguments) -> None:
        self._arguments = arguments

    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("average", PAIR))
        self.marks = marks_of(self._arguments, runtime_context)

    def flat_map(self, value: Row) -> Iterator[tuple[int, int]]:
        self.marks.row()
        current = self.sum.value()
        if current is None:
            current = (0, 0)
        current = (current[0] + value[1], current[1] + 1)
        if current[1] >= 3:
            self.sum.clear()
            yield value[0], current[0] // current[1]
        else:
            self.sum.update(current)

    def close(self) -> None:
        self.marks.write()


class First(FilterFunction):
    """The first event of each key; keys are forgotten an hour after it."""

    def __init__(self, arguments: JobArguments) -> None:
        self._arguments = arguments

    def open(self, runtime_context: RuntimeContext) -> None:
        seen = ValueStateDescriptor("seen", Types.BOOLEAN())
        seen.enable_time_to_live(StateTtlConfig.new_builder(Time.hours(1)).build())
        self.seen = runtime_context.get_state(seen)
        self.marks = marks_of(self._arguments, runtime_context)

    def filter(self, value: Row) -> bool:
        self.marks.row()
        if self.seen.value():
            return False
        self.seen.update(True)
        return True

    def close(self) -> None:
        self.marks.write()


class Check(MapFunction):
    """Counts and sums up what a job emits; of a job that emits every row it takes the marks, too."""

    def __init__(self, arguments: JobArguments, marking: bool) -> None:
        self._arguments = arguments
        self._marking = marking

    def open(self, runtime_context: RuntimeContext) -> None:
        self.tally = Tally(self._arguments.scratch, runtime_context.get_index_of_this_subtask())
        self.columns = CHECKED[self._arguments.job]
        self.marks = marks_of(self._arguments, runtime_context) if self._marking else None

    def map(self, value: Any) -> int:
        if self.marks is not None:
            self.marks.row()
        self.tally.rows += 1
        for column in self.columns:
            self.tally.checksum += value[column]
        return 0

    def close(self) -> None:
        self.tally.write()
        if self.marks is not None:
            self.marks.write()


def average(events: DataStream, arguments: JobArguments) -> DataStream:
    keyed = events.key_by(lambda event: event[0], key_type=Types.LONG())
    return keyed.flat_map(CountWithKeyedState(arguments), output_type=PAIR)


def totals(events: DataStream, arguments: JobArguments) -> DataStream:
    firsts = events.map(lambda event: (event[0], 1, event[1], event[1], event[1]), output_type=TOTALS)
    return firsts.key_by(lambda one: one[0], key_type=Types.LONG()).reduce(
        lambda one, other: (
            one[0],
            one[1] + other[1],
            one[2] + other[2],
            min(one[3], other[3]),
            max(one[4], other[4]),
        )
    )


def dedup(events: DataStream, arguments: JobArguments) -> DataStream:
    return events.key_by(lambda event: event[0], key_type=Types.LONG()).filter(First(arguments))


#: By job: its table, and the program over it.
PROGRAMS: dict[str, tuple[str, Callable[[DataStream, JobArguments], DataStream]]] = {
    "average": ("events", average),
    "totals": ("events", totals),
    "dedup": ("events", dedup),
    **pyflink_windows.PROGRAMS,
}


def configuration(arguments: JobArguments) -> Configuration:
    settings = {
        "state.backend.type": BACKENDS[arguments.variant],
        "execution.checkpointing.interval": "1s",
        "execution.checkpointing.incremental": "true",
        "execution.checkpointing.dir": (arguments.scratch / "checkpoints").as_uri(),
        "parallelism.default": str(PARALLELISM),
        "taskmanager.numberOfTaskSlots": str(PARALLELISM),
        "restart-strategy.type": "none",
        "python.executable": sys.executable,
        "python.client.executable": sys.executable,
    }
    config = Configuration()
    for name, value in settings.items():
        config.set_string(name, value)
    return config


def table_of(env: StreamExecutionEnvironment, arguments: JobArguments, name: str) -> DataStream:
    tables = StreamTableEnvironment.create(env)
    schema = Schema.new_builder()
    for column in COLUMNS[name]:
        schema = schema.column(column, DataTypes.BIGINT())
    path = arguments.data / name
    if "time" in COLUMNS[name]:
        path = one_file(path, arguments.scratch / "rows.csv")
    descriptor = TableDescriptor.for_connector("filesystem").schema(schema.build()).option("path", path.as_uri())
    tables.create_temporary_table(name, descriptor.format("csv").build())
    return tables.to_data_stream(tables.from_path(name))


def one_file(directory: Path, path: Path) -> Path:
    """All files of a directory behind one another."""
    with path.open("wb") as whole:
        for part in sorted(directory.iterdir()):
            whole.write(part.read_bytes())
    return path


def main() -> None:
    arguments = JobArguments.parse()
    env = StreamExecutionEnvironment.get_execution_environment(configuration(arguments))
    table, program = PROGRAMS[arguments.job]
    results = program(table_of(env, arguments, table), arguments)
    checked = results.map(Check(arguments, marking=arguments.job == "totals"), output_type=Types.INT())
    discard = get_gateway().jvm.org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink()
    checked.sink_to(Sink(discard))
    env.execute(arguments.job)
    outcome_of_marks(arguments.scratch, arguments.epoch_rows).write(arguments.result)


if __name__ == "__main__":
    main()
