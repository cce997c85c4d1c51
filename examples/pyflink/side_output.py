"""Splits a stream: even numbers go on, odd ones go aside, as texts."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from holdfast.common import Encoder, Types
from holdfast.datastream import OutputTag, ProcessFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink

ASIDE = OutputTag("aside", Types.STRING())


class Split(ProcessFunction):
    def process_element(self, value: int, ctx: ProcessFunction.Context) -> Iterator[Any]:
        if value % 2 == 0:
            yield str(value)
        else:
            yield ASIDE, f"aside-{value}"


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1, 2, 3, 4, 5], Types.INT())
    even = numbers.process(Split(), Types.STRING())
    both = even.union(even.get_side_output(ASIDE))
    if output is None:
        both.print()
    else:
        both.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("a side output")


if __name__ == "__main__":
    main(*sys.argv[1:])
