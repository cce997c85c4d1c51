"""Numbers -> windows -> files, and numbers -> a buffer in operator state -> files. Runs as a driver program.

The rows of each key in each window are counted. The buffer hands numbers on in bunches; those that wait are a list of
operator state, which is dealt out again when the parallelism changes.
"""

from __future__ import annotations

import json
import logging
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from holdfast.common import Configuration, Encoder, Time, Types, WatermarkStrategy
from holdfast.datastream import AggregateFunction, ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import SlidingEventTimeWindows, TimeWindow
from holdfast.errors import JobEndedError
from tests.chaos.timers_job import ByNumber
from tests.connectors.directories import committed_files
from tests.integration.audited_job import UnevenNumbers
from tests.integration.operator_functions import BufferingSink
from tests.integration.programs import published
from tests.kit.rescaled import parallelism_of_this_start

KEYS, SIZE, SLIDE, BUNCH, LARGEST = 50, 1_500, 500, 270, 1_500
OUTPUTS = ("windows", "bunches")
TRIPLE = Types.TUPLE([Types.LONG(), Types.LONG(), Types.LONG()])


class CountRows(AggregateFunction):
    def create_accumulator(self) -> int:
        return 0

    def add(self, value: int, accumulator: int) -> int:
        return accumulator + 1

    def get_result(self, accumulator: int) -> int:
        return accumulator

    def merge(self, a: int, b: int) -> int:
        return a + b


class WithWindow(ProcessWindowFunction):
    """(key, end of the window, rows)."""

    def process(
        self, key: int, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[int]
    ) -> Iterator[tuple[int, int, int]]:
        (count,) = elements
        yield key, context.window().end, count


def expected(numbers: Sequence[int]) -> Iterator[tuple[int, ...]]:
    yield from ((number,) for number in numbers)
    windows: Counter[tuple[int, int]] = Counter()
    for number in numbers:
        latest = number - number % SLIDE
        windows.update((number % KEYS, start + SIZE) for start in range(latest, number - SIZE, -SLIDE))
    yield from ((key, end, count) for (key, end), count in windows.items())


def rows_out(directory: Path) -> Iterator[tuple[int, ...]]:
    yield from published(directory / "windows")
    for path in committed_files(directory / "bunches"):
        yield from ((int(line),) for line in path.read_text().splitlines())


def run(directory: Path, rows: int, settings: dict[str, str]) -> None:
    configuration = Configuration.from_dict(
        {
            "holdfast.job-id": "windows",
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
    windowed = numbers.key_by(lambda number: number % KEYS, Types.LONG()).window(
        SlidingEventTimeWindows.of(Time.milliseconds(SIZE), Time.milliseconds(SLIDE))
    )
    counts = windowed.aggregate(CountRows(), WithWindow(), Types.LONG(), TRIPLE).uid("counts")
    counts.sink_to(FileSink.json(str(directory / "windows"))).uid("windows")
    lines = FileSink.for_row_format(str(directory / "bunches"), Encoder.simple_string_encoder()).build()
    numbers.rebalance().sink_to(BufferingSink(lines, BUNCH)).uid("bunches")
    env.execute("windows")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    logging.getLogger("py4j").setLevel(logging.ERROR)
    # A driver that was killed may have got to the end of the job.
    with suppress(JobEndedError):
        run(Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3]))
