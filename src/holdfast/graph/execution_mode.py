"""Whether a program runs as a stream or as a batch."""

from __future__ import annotations

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import StreamGraph
from holdfast.types.settings import ExecutionMode


def runs_as_batch(mode: ExecutionMode, graph: StreamGraph) -> bool:
    """ProgramError when a batch was asked for and a source has no end."""
    unbounded = [node.name for node in graph.nodes if not node.inputs and not node.bounded]
    if mode is ExecutionMode.BATCH and unbounded:
        raise ProgramError(
            f"The program runs in BATCH mode, and the source '{unbounded[0]}' is not bounded: there would never be a "
            "result. Give it an end (a bounded FileSource, a collection, a DataFrame, bounded = True on a source that "
            "ends), or set RuntimeExecutionMode.STREAMING."
        )
    return mode is not ExecutionMode.STREAMING and not unbounded
