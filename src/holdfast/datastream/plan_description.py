"""The plan of a program as JSON, for ``holdfast info``."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.graph.job_graph import JobGraph, JobOperator, JobSettings, build_job_graph
from holdfast.graph.stream_graph import StreamGraph
from holdfast.runtime.partitioners import Forward


def describe_plan(graph: StreamGraph, job_id: str, name: str, settings: JobSettings) -> str:
    """No Spark is started for it: without a parallelism operators are shown with one subtask."""
    job = build_job_graph(graph, job_id, name, settings, settings.parallelism or 1)
    return json.dumps({"nodes": _nodes(job)}, indent=2)


def _nodes(job: JobGraph) -> list[dict[str, Any]]:
    shown = [operator for operator in job.operators if not operator.node.is_union]
    numbers = {operator.operator_id: number for number, operator in enumerate(shown, start=1)}
    nodes = []
    for operator in shown:
        inputs = list(_inputs(job, operator))
        kind = "Data Source" if not inputs else "Data Sink" if operator.node.is_sink else "Operator"
        node: dict[str, Any] = {
            "id": numbers[operator.operator_id],
            "type": operator.name,
            "pact": kind,
            "contents": operator.name,
            "parallelism": operator.parallelism,
        }
        if inputs:
            node["predecessors"] = [
                {"id": numbers[source.operator_id], "ship_strategy": strategy, "side": "second"}
                for source, strategy in inputs
            ]
        nodes.append(node)
    return nodes


def _inputs(job: JobGraph, operator: JobOperator) -> Iterator[tuple[JobOperator, str]]:
    """What an operator reads and how; in the place of a union that which it puts together, as Flink shows it."""
    for edge in job.inputs_of(operator):
        if not edge.source.node.is_union:
            yield edge.source, edge.partitioner.name
            continue
        for source, strategy in _inputs(job, edge.source):
            yield source, strategy if isinstance(edge.partitioner, Forward) else edge.partitioner.name
