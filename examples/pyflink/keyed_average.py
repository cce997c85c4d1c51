"""The average of every two values of a key, kept in a value state."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast.common import Encoder, Types
from holdfast.datastream import FlatMapFunction, RuntimeContext, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.state import ValueStateDescriptor

PAIR = Types.TUPLE([Types.LONG(), Types.LONG()])


class AverageOfTwo(FlatMapFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.count_and_sum = runtime_context.get_state(ValueStateDescriptor("count and sum", PAIR))

    def flat_map(self, value: tuple[int, int]) -> Iterator[tuple[int, float]]:
        count, total = self.count_and_sum.value() or (0, 0)
        count, total = count + 1, total + value[1]
        self.count_and_sum.update((count, total))
        if count >= 2:
            self.count_and_sum.clear()
            yield value[0], total / count


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    pairs = env.from_collection([(1, 3), (1, 5), (1, 7), (1, 4), (1, 2)], PAIR)
    averages = pairs.key_by(lambda pair: pair[0], key_type=Types.LONG()).flat_map(AverageOfTwo())
    if output is None:
        averages.print()
    else:
        averages.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("averages of two")


if __name__ == "__main__":
    main(*sys.argv[1:])
