"""Numbers -> keyed state with timers -> files. Runs as a driver program.

Each number is published as it comes, and the rows of each key in each span of event time are counted and published by
a timer at the span's end. Slices of the source are of random size.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.common import Configuration, TimestampAssigner, Types, WatermarkStrategy
from holdfast.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import MapStateDescriptor
from holdfast.errors import JobEndedError
from tests.integration.audited_job import UnevenNumbers
from tests.integration.programs import published
from tests.kit.rescaled import parallelism_of_this_start

#: Slices of the source are smaller than ``LARGEST``.
KEYS, SPAN, LARGEST = 50, 1_000, 1_500
OUTPUTS = ("out",)
TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class ByNumber(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class CountSpans(KeyedProcessFunction):
    """(key, number, 0) for each row, and (key, end, rows) when event time reaches the end of a span."""

    def open(self, runtime_context: RuntimeContext) -> None:
        self.counts = runtime_context.get_map_state(MapStateDescriptor("counts", Types.LONG(), Types.LONG()))

    def process_element(self, value: int, ctx: KeyedProcessFunction.Context) -> Iterator[tuple[int, int, int]]:
        end = value - value % SPAN + SPAN
        count = self.counts.get(end)
        if count is None:
            ctx.timer_service().register_event_time_timer(end)
        self.counts.put(end, (count or 0) + 1)
        yield ctx.get_current_key(), value, 0

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[int, int, int]]:
        yield ctx.get_current_key(), timestamp, self.counts.get(timestamp)
        self.counts.remove(timestamp)


def expected(numbers: Sequence[int]) -> Iterable[tuple[int, int, int]]:
    spans = Counter((number % KEYS, number - number % SPAN + SPAN) for number in numbers)
    yield from ((number % KEYS, number, 0) for number in numbers)
    yield from ((key, end, count) for (key, end), count in spans.items())


def rows_out(directory: Path) -> Iterable[tuple[int, ...]]:
    return published(directory / "out")


def run(directory: Path, rows: int, settings: dict[str, str]) -> None:
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "timers",
            "execution.checkpointing.dir": str(directory / "checkpoints"),
            "execution.checkpointing.interval": "500 ms",
            "restart-strategy.type": "fixed-delay",
            "restart-strategy.fixed-delay.attempts": "1000",
            "restart-strategy.fixed-delay.delay": "50 ms",
            "parallelism.default": parallelism_of_this_start(),
            **settings,
        }
    )
    env = StreamExecutionEnvironment.get_execution_environment(configuration)
    times = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(ByNumber())
    numbers = env.from_source(UnevenNumbers(rows, LARGEST), times, "numbers").uid("numbers")
    keyed = numbers.key_by(lambda number: number % KEYS, Types.LONG())
    keyed.process(CountSpans(), TRIPLE).uid("spans").sink_to(FileSink.json(str(directory / "out"))).uid("out")
    env.execute("timers")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
