"""How many rows of a key follow each other within five milliseconds."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from holdfast.common import Encoder, Time, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import ProcessWindowFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import EventTimeSessionWindows, TimeWindow

Described = tuple[str, int, int, int]


class SecondField(TimestampAssigner):
    def extract_timestamp(self, value: tuple[str, int], record_timestamp: int) -> int:
        return value[1]


class Describe(ProcessWindowFunction[tuple[str, int], Described, str, TimeWindow]):
    """Key, start, end and number of rows of a window."""

    def process(
        self, key: str, context: ProcessWindowFunction.Context[TimeWindow], elements: Iterable[tuple[str, int]]
    ) -> list[Described]:
        return [(key, context.window().start, context.window().end, len(list(elements)))]


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    values = env.from_collection(
        [("hi", time) for time in [1, 2, 3, 4, 8, 9, 15]], Types.TUPLE([Types.STRING(), Types.INT()])
    )
    strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(SecondField())
    described = (
        values.assign_timestamps_and_watermarks(strategy)
        .key_by(lambda value: value[0], key_type=Types.STRING())
        .window(EventTimeSessionWindows.with_gap(Time.milliseconds(5)))
        .process(Describe(), Types.TUPLE([Types.STRING(), Types.INT(), Types.INT(), Types.INT()]))
    )
    if output is None:
        described.print()
    else:
        described.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("sessions")


if __name__ == "__main__":
    main(*sys.argv[1:])
