"""Which streams can be aligned by their watermarks."""

from __future__ import annotations

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import Node
from holdfast.runtime.alignment import WatermarkAlignment


def align(node: Node, alignment: WatermarkAlignment) -> None:
    """Hold the source in front of ``node``, which gives event times, back with its group. ProgramError where there is
    no source that can be."""
    connection = node.inputs[0]
    source = connection.source
    if source.data_frame is not None:
        raise ProgramError(
            f"with_watermark_alignment('{alignment.group}', ...) behind the DataFrame '{source.name}': Spark decides "
            "how much of a DataFrame an epoch reads, and it cannot be held back by event time. Read the input with a "
            "source of Holdfast's (FileSource, KafkaSource), or leave the alignment out and bound a micro-batch with "
            "the options of Spark's reader, such as maxOffsetsPerTrigger or maxFilesPerTrigger."
        )
    between = (connection.tag, connection.partitioner, connection.key_by)
    if source.inputs or any(each is not None for each in between):
        raise ProgramError(
            f"with_watermark_alignment('{alignment.group}', ...) behind '{source.name}', and not right behind a "
            "source: only that can be held back. Give the strategy to env.from_source(source, strategy, name), or "
            "assign it right behind the source."
        )
    node.alignment = alignment
    node.parallelism_limit = source.parallelism_limit
