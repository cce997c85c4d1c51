"""Counts numbers by their last digit, without an end: a row (digit, count) for every number.

    holdfast run examples/counting.py DIRECTORY

What it must give is known: for each digit the counts 1, 2, 3, ..., each exactly once, whatever happened to the job in
between. ``check_counts.py`` looks at that.
"""

from __future__ import annotations

import sys

from holdfast.common import Types, WatermarkStrategy
from holdfast.datastream import MapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors import FileSink, SequenceSource
from holdfast.datastream.state import ValueStateDescriptor


class CountByDigit(MapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def map(self, value: int) -> tuple[int, int]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        return value % 10, count


def main(directory: str) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.enable_checkpointing(1_000)
    numbers = env.from_source(SequenceSource(rows_per_second=500), WatermarkStrategy.no_watermarks(), "numbers")
    digits = numbers.uid("numbers").key_by(lambda number: number % 10, Types.LONG())
    counts = digits.map(CountByDigit(), "digit BIGINT, count BIGINT").name("count by digit").uid("counts")
    counts.sink_to(FileSink.parquet(directory)).name("results").uid("results")
    env.execute("counting")


if __name__ == "__main__":
    main(sys.argv[1])
