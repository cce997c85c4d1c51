"""Metrics of vertices and their subtasks for REST, under Flink's ids."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.job.execution_graph import Execution, ExecutionVertex
from holdfast.runtime.metric_values import Plain
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.server.models_cluster import AggregatedMetric
from holdfast.server.served_job import ServedJob

#: What separates the parts of an id, or several ids, is no part of a name.
_SEPARATORS = str.maketrans(" .:,", "____")


def subtask_metrics(job: ServedJob, vertex: ExecutionVertex, execution: Execution) -> dict[str, Plain]:
    """Metrics of a task, and those of its operators' functions with the name of the operator before them."""
    graph = job.gateway.master.execution_graph
    told: dict[str, Plain] = {"numRecordsIn": execution.rows_in, "numRecordsOut": execution.rows_out}
    if execution.watermark != MIN_WATERMARK:
        told["currentInputWatermark"] = execution.watermark
    for operator_id in vertex.operator_ids:
        for reading in graph.metrics.of_subtask(operator_id, execution.subtask):
            groups = (part for group in reading.scope for part in group if part is not None)
            parts = (graph.names[operator_id], *groups, reading.name)
            metric_id = ".".join(part.translate(_SEPARATORS) for part in parts)
            told |= {metric_id + suffix: value for suffix, value in reading.values.items()}
    return told


def vertex_metrics(job: ServedJob, vertex: ExecutionVertex) -> dict[str, Plain]:
    """Metrics of all subtasks, each with its number before them."""
    return {
        f"{execution.subtask}.{metric_id}": value
        for execution in vertex.executions
        for metric_id, value in subtask_metrics(job, vertex, execution).items()
    }


def aggregated_metrics(
    job: ServedJob, vertex: ExecutionVertex, executions: Iterable[Execution]
) -> list[AggregatedMetric]:
    """Every metric that is a number, over subtasks."""
    values: dict[str, list[float]] = {}
    for execution in executions:
        for metric_id, value in subtask_metrics(job, vertex, execution).items():
            if not isinstance(value, bool | str):
                values.setdefault(metric_id, []).append(float(value))
    return [_aggregated(metric_id, numbers) for metric_id, numbers in values.items()]


def shown(value: Plain) -> str:
    """The text of a value in an answer."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _aggregated(metric_id: str, values: list[float]) -> AggregatedMetric:
    total = sum(values)
    mean = total / len(values)
    deviation = sum(abs(value - mean) for value in values) / len(values)
    skew = min(100.0, 100 * deviation / mean) if mean > 0 else 0.0
    return AggregatedMetric(metric_id, min(values), max(values), mean, total, skew)
