"""A uid for every operator, in a program that has disabled ids by place."""

from __future__ import annotations

from holdfast.errors import ProgramError
from holdfast.graph.stream_graph import Node, StreamGraph
from holdfast.runtime.watermarks import TimestampsAndWatermarksOperator


def require_uids(graph: StreamGraph) -> None:
    """Every operator of the program's own has a uid, or a uid hash. A source whose watermark strategy stands behind it
    as an operator is one with that for the program, and gets its uid from it.
    """
    for node in graph.nodes:
        if node.uid is None and node.uid_hash is None and not node.auxiliary:
            node.uid = _uid_of_source(graph, node)
    nameless = [node for node in graph.nodes if node.uid is None and node.uid_hash is None and not node.auxiliary]
    if nameless:
        names = ", ".join(f"'{node.name}'" for node in nameless)
        raise ProgramError(
            f"Auto-generated uids are disabled, and operators have no uid: {names}. Give each of them one with "
            "uid('...'), or leave disable_auto_generated_uids() out."
        )


def _uid_of_source(graph: StreamGraph, source: Node) -> str | None:
    behind = [node for node in graph.nodes for connection in node.inputs if connection.source is source]
    if source.inputs or len(behind) != 1 or behind[0].factory is not TimestampsAndWatermarksOperator:
        return None
    return None if behind[0].uid is None else f"{behind[0].uid}-source"
