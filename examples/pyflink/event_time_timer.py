"""The sum of a name's payments within each ten seconds of event time, given when that time is over."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast.common import Duration, Encoder, Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import KeyedProcessFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import MapStateDescriptor

Payment = tuple[int, str, int]


class FirstField(TimestampAssigner):
    def extract_timestamp(self, value: Payment, record_timestamp: int) -> int:
        return value[0]


class SumOfTenSeconds(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sums = runtime_context.get_map_state(MapStateDescriptor("sums", Types.LONG(), Types.LONG()))

    def process_element(self, value: Payment, ctx: KeyedProcessFunction.Context) -> None:
        end = ctx.timestamp() - ctx.timestamp() % 10_000 + 10_000
        self.sums.put(end, (self.sums.get(end) or 0) + value[2])
        ctx.timer_service().register_event_time_timer(end)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterator[tuple[str, int, int]]:
        total = self.sums.get(timestamp)
        assert total is not None
        self.sums.remove(timestamp)
        yield ctx.get_current_key(), timestamp, total


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    payments = env.from_collection(
        [
            (1_000, "Alice", 110),
            (4_000, "Bob", 30),
            (3_000, "Alice", 20),
            (2_000, "Bob", 53),
            (12_000, "Alice", 13),
            (11_000, "Bob", 3),
            (13_000, "Bob", 16),
            (31_000, "Alice", 20),
        ],
        Types.TUPLE([Types.LONG(), Types.STRING(), Types.LONG()]),
    )
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_seconds(2))
    sums = (
        payments.assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(FirstField()))
        .key_by(lambda payment: payment[1], key_type=Types.STRING())
        .process(SumOfTenSeconds())
    )
    if output is None:
        sums.print()
    else:
        sums.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("sums of ten seconds")


if __name__ == "__main__":
    main(*sys.argv[1:])
