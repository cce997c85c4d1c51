"""The plan of a program as text: Flink's JSON of nodes and their inputs."""

from __future__ import annotations

import json
from typing import Any

from holdfast.graph.job_graph import JobEdge, JobGraph, JobOperator


def execution_plan(graph: JobGraph) -> str:
    numbers = {operator: number for number, operator in enumerate(graph.operators, start=1)}
    nodes = [_node(graph, operator, numbers) for operator in graph.operators]
    return json.dumps({"nodes": nodes}, indent=2)


def _node(graph: JobGraph, operator: JobOperator, numbers: dict[JobOperator, int]) -> dict[str, Any]:
    inputs = graph.inputs_of(operator)
    node = {
        "id": numbers[operator],
        "type": operator.name,
        "pact": "Data Sink" if operator.node.is_sink else "Operator" if inputs else "Data Source",
        "contents": operator.name,
        "parallelism": operator.parallelism,
    }
    if inputs:
        node["predecessors"] = [_predecessor(edge, numbers) for edge in inputs]
    return node


def _predecessor(edge: JobEdge, numbers: dict[JobOperator, int]) -> dict[str, Any]:
    side = "second" if edge.connection.input_index else "first"
    return {"id": numbers[edge.source], "ship_strategy": edge.partitioner.name, "side": side}
