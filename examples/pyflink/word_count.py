"""Counts the words of a text: of the files in a directory, or of a few lines.

    python examples/pyflink/word_count.py --input DIRECTORY --output DIRECTORY
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from holdfast.common import Encoder, Types, WatermarkStrategy
from holdfast.datastream import StreamExecutionEnvironment
from holdfast.datastream.connectors.file_system import FileSink, FileSource, StreamFormat

LINES = [
    "the rain is on the roof",
    "the roof is on the house",
    "and the house is on a hill",
    "the hill is in the rain",
]


def split(line: str) -> Iterator[str]:
    yield from line.split()


def main(input_path: str | None, output: str | None) -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    if input_path is None:
        lines = env.from_collection(LINES, Types.STRING())
    else:
        source = FileSource.for_record_stream_format(StreamFormat.text_line_format(), input_path)
        lines = env.from_source(
            source.process_static_file_set().build(), WatermarkStrategy.for_monotonous_timestamps(), "lines"
        )
    counts = (
        lines.flat_map(split, output_type=Types.STRING())
        .map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], key_type=Types.STRING())
        .reduce(lambda one, other: (one[0], one[1] + other[1]))
    )
    if output is None:
        counts.print()
    else:
        counts.sink_to(FileSink.for_row_format(output, Encoder.simple_string_encoder()).build())
    env.execute("word count")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Count words.")
    parser.add_argument("--input", help="a directory of text files")
    parser.add_argument("--output", help="where the counts go; they are printed without it")
    arguments = parser.parse_args()
    main(arguments.input, arguments.output)
