"""The sum of every three values of a key."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from holdfast.common import Encoder, Types
from holdfast.datastream import StreamExecutionEnvironment, WindowFunction
from holdfast.datastream.connectors.file_system import FileSink
from holdfast.datastream.window import CountWindow


class Total(WindowFunction[tuple[int, str], tuple[str, int], str, CountWindow]):
    def apply(self, key: str, window: CountWindow, inputs: Iterable[tuple[int, str]]) -> list[tuple[str, int]]:
        return [(key, sum(value for value, _ in inputs))]


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    values = env.from_collection(
        [(1, "hi"), (2, "hello"), (3, "hi"), (4, "hello"), (5, "hi"), (6, "hello"), (6, "hello")],
        Types.TUPLE([Types.INT(), Types.STRING()]),
    )
    totals = (
        values.key_by(lambda value: value[1], key_type=Types.STRING())
        .count_window(3)
        .apply(Total(), Types.TUPLE([Types.STRING(), Types.INT()]))
    )
    if output is None:
        totals.print()
    else:
        totals.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("totals of three")


if __name__ == "__main__":
    main(*sys.argv[1:])
