"""Numbers and words in one stream: each input has a function of its own."""

from __future__ import annotations

import sys

from holdfast.common import Encoder, Types
from holdfast.datastream import CoMapFunction, StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink


class Tell(CoMapFunction):
    def map1(self, value: int) -> str:
        return f"a number: {value + 1}"

    def map2(self, value: str) -> str:
        return f"a word: {value.upper()}"


def main(output: str | None = None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    numbers = env.from_collection([1, 2, 3], Types.INT())
    words = env.from_collection(["ox", "emu", "owl"], Types.STRING())
    told = numbers.connect(words).map(Tell(), Types.STRING())
    if output is None:
        told.print()
    else:
        told.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("numbers and words")


if __name__ == "__main__":
    main(*sys.argv[1:])
