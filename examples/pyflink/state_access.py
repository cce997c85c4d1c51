"""A running sum for each name, in a process function. No type is declared: keys, rows and state are pickled."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from holdfast.common import Encoder
from holdfast.common.typeinfo import Types
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.functions import KeyedProcessFunction, RuntimeContext
from holdfast.datastream.state import ValueStateDescriptor


class Sum(KeyedProcessFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.sum = runtime_context.get_state(ValueStateDescriptor("sum", Types.PICKLED_BYTE_ARRAY()))

    def process_element(
        self, value: tuple[str, float], ctx: KeyedProcessFunction.Context
    ) -> Iterator[tuple[str, float]]:
        current = self.sum.value()
        if current is None:
            current = 0.0
        current += value[1]
        self.sum.update(current)
        yield value[0], current


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    payments = env.from_collection(
        [
            ("Alice", 110.0),
            ("Bob", 30.25),
            ("Alice", 20.0),
            ("Bob", 53.5),
            ("Alice", 13.0),
            ("Bob", 3.25),
            ("Bob", 16.0),
        ]
    )
    sums = payments.key_by(lambda payment: payment[0]).process(Sum())
    if output is None:
        sums.print()
    else:
        sums.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("sums")


if __name__ == "__main__":
    main(*sys.argv[1:])
