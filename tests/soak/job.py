"""Numbers that come at a steady rate -> keyed state with timers and time to live -> files. Runs as a driver program.

Keys come and go: each counts its rows of one span of event time, publishes them by a timer at the span's end and is
gone. What was seen lately of a key is kept beside, with a time to live.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from holdfast.common import Configuration, Time, TimestampAssigner, Types, WatermarkStrategy
from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import StateTtlConfig, ValueStateDescriptor
from holdfast.errors import JobEndedError
from holdfast.runtime.batch import Batch
from holdfast.runtime.source import ReaderContext, ReadLimit, Source, SourceReader, WrappingReader

#: Rows a second, keys of a span, and its rows.
RATE, KEYS, SPAN = 600, 400, 6_000
TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class PacedReader(WrappingReader):
    """Gives its numbers when they are due: so many a second since the job began."""

    def __init__(self, reader: SourceReader, began: float, per_second: float) -> None:
        super().__init__(reader)
        self._began = began
        self._per_second = per_second
        self._given = 0

    def read(self, limit: ReadLimit) -> Iterator[Batch]:
        due = int((time.time() - self._began) * self._per_second)
        for batch in super().read(ReadLimit(max(0, min(limit.rows, due - self._given)), limit.deadline)):
            self._given += len(batch)
            yield batch


class PacedNumbers(Source):
    #: Numbers that are not due yet do not wait to be read.
    bounded = False

    def __init__(self, count: int, began: float, rate: float) -> None:
        self._numbers = NumberSequenceSource(0, count - 1)
        self._began = began
        self._rate = rate

    def output_type(self) -> Any:
        return self._numbers.output_type()

    def create_reader(self, context: ReaderContext) -> SourceReader:
        # One that goes on from a checkpoint counts anew.
        per_second = self._rate / context.parallelism
        return PacedReader(self._numbers.create_reader(context), max(self._began, time.time() - 1), per_second)


class ByPlaceInHalf(TimestampAssigner):
    """The two subtasks of the source read half of the numbers each. Were event time the number itself, the second one's
    would wait in the state for all of the first one's, and state would grow until then.
    """

    def __init__(self, half: int) -> None:
        self._half = half

    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value % self._half


def key_of(number: int) -> int:
    """In its span: no key of one span is a key of another."""
    return number // SPAN * KEYS + number % KEYS


class CountSpans(KeyedProcessFunction):
    """(key, end, rows) when event time reaches the end of the key's span."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))
        lately = ValueStateDescriptor("lately", Types.LONG())
        lately.enable_time_to_live(StateTtlConfig.new_builder(Time.seconds(20)).build())
        self.lately = runtime_context.get_state(lately)

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> None:
        count = self.count.value()
        if count is None:
            time = ctx.timestamp() or 0
            ctx.timer_service().register_event_time_timer(time - time % SPAN + SPAN)
        self.count.update((count or 0) + 1)
        self.lately.update(value)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int, int]]:
        yield ctx.get_current_key(), timestamp, self.count.value()
        self.count.clear()


def expected(rows: int) -> list[tuple[int, int, int]]:
    """What comes of two halves of whole spans."""
    of_a_key = SPAN // KEYS
    return [(key, key // KEYS * SPAN % (rows // 2) + SPAN, of_a_key) for key in range(rows // SPAN * KEYS)]


def run(directory: Path, rows: int, began: float, settings: dict[str, str]) -> None:
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "soak",
            "state.backend.type": "rocksdb",
            "execution.checkpointing.incremental": "true",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "1 s",
            "holdfast.state.local-dir": str(directory / "local"),
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000000",
            "restart-strategy.fixed-delay.delay": "1 s",
            "parallelism.default": "2",
            "spark.master": "local[2]",
            **settings,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByPlaceInHalf(rows // 2))
    numbers = env.from_source(PacedNumbers(rows, began, RATE), times, "numbers").uid("numbers")
    counted = numbers.key_by(key_of, Types.LONG()).process(CountSpans(), TRIPLE).uid("spans")
    counted.sink_to(FileSink.json(str(directory / "out"))).uid("out")
    env.execute("soak")


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), json.loads(sys.argv[4]))
