"""The plan of a program as JSON, for ``holdfast info``."""

from __future__ import annotations

import json
from typing import Any

from holdfast.graph.job_graph import JobGraph, JobSettings, build_job_graph
from holdfast.graph.stream_graph import StreamGraph


def describe_plan(graph: StreamGraph, job_id: str, name: str, settings: JobSettings) -> str:
    """No Spark is started for it: without a parallelism operators are shown with one subtask."""
    job = build_job_graph(graph, job_id, name, settings, settings.parallelism or 1)
    return json.dumps({"nodes": _nodes(job)}, indent=2)


def _nodes(job: JobGraph) -> list[dict[str, Any]]:
    numbers = {operator.operator_id: number for number, operator in enumerate(job.operators, start=1)}
    nodes = []
    for operator in job.operators:
        inputs = job.inputs_of(operator)
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
                {"id": numbers[edge.source.operator_id], "ship_strategy": edge.partitioner.name, "side": "second"}
                for edge in inputs
            ]
        nodes.append(node)
    return nodes
