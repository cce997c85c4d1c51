"""Requests for metrics of a job, of its vertices and their subtasks: names alone, or the values of those asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from holdfast.job.execution_graph import Execution, ExecutionVertex
from holdfast.runtime.metric_values import Plain
from holdfast.server.archive import ArchivedJob
from holdfast.server.job_metrics import job_metrics
from holdfast.server.models_cluster import AggregatedMetric, Metric
from holdfast.server.requests import Call, RestError
from holdfast.server.served_job import ServedJob
from holdfast.server.vertex_metrics import aggregated_metrics, shown, subtask_metrics, vertex_metrics

_AGGREGATIONS = ("min", "max", "avg", "sum", "skew")

T = TypeVar("T", Metric, AggregatedMetric)


def of_job(call: Call) -> list[Metric]:
    return _chosen(call, _known(call, lambda job: as_metrics(job_metrics(job)), list[Metric]))


def of_vertex(call: Call) -> list[Metric]:
    return _chosen(call, _known(call, lambda job: as_metrics(vertex_metrics(job, call.vertex(job))), list[Metric]))


def of_subtask(call: Call) -> list[Metric]:
    job = call.job()
    vertex = call.vertex(job)
    execution = vertex.executions[_subtask(vertex, call.parameters["subtask"])]
    return _chosen(call, as_metrics(subtask_metrics(job, vertex, execution)))


def of_subtasks(call: Call) -> list[AggregatedMetric]:
    """Over all subtasks, or over those that the query names."""

    def aggregated(job: ServedJob) -> list[AggregatedMetric]:
        vertex = call.vertex(job)
        told = call.query.get("subtasks")
        chosen = vertex.executions if told is None else _executions(vertex, told)
        return aggregated_metrics(job, vertex, chosen)

    wanted = call.query.get("agg", ",".join(_AGGREGATIONS)).lower().split(",")
    unknown = [one for one in wanted if one not in _AGGREGATIONS]
    if unknown:
        raise RestError(
            400, f"The query parameter 'agg' has '{unknown[0]}'; expected some of {', '.join(_AGGREGATIONS)}"
        )
    if "subtasks" in call.query and isinstance(call.any_job(), ArchivedJob):
        raise RestError(404, f"The history of job {call.job_id} has metrics of all subtasks together, not of some")
    found = _chosen(call, _known(call, aggregated, list[AggregatedMetric]))
    dropped = dict.fromkeys(one for one in _AGGREGATIONS if one not in wanted)
    return [msgspec.structs.replace(one, **dropped) for one in found]


def as_metrics(values: Mapping[str, Plain]) -> list[Metric]:
    return [Metric(metric_id, shown(value)) for metric_id, value in values.items()]


def _known(call: Call, of_live: Callable[[ServedJob], list[T]], kind: type[list[T]]) -> list[T]:
    """All metrics of a job of this driver, or those that the history holds."""
    job = call.any_job()
    if not isinstance(job, ArchivedJob):
        return of_live(job)
    if call.subpath not in job.resources:
        raise RestError(404, f"The history of job {call.job_id} has no '{call.subpath}'")
    return msgspec.convert(job.resources[call.subpath], kind)


def _chosen(call: Call, known: list[T]) -> list[T]:
    if "get" not in call.query:
        return [type(one)(one.id) for one in known]
    by_id = {one.id: one for one in known}
    return [by_id[name] for name in call.query["get"].split(",") if name in by_id]


def _executions(vertex: ExecutionVertex, told: str) -> list[Execution]:
    """The subtasks that a text such as '0,2-4' names."""
    chosen: list[Execution] = []
    for part in told.split(","):
        first, dash, last = part.partition("-")
        begin, end = _subtask(vertex, first), _subtask(vertex, last if dash else first)
        chosen += vertex.executions[begin : end + 1]
    return chosen


def _subtask(vertex: ExecutionVertex, told: str) -> int:
    if not (told.isascii() and told.isdigit()) or len(told) > 9:
        raise RestError(400, f"'{told}' is no subtask; expected a number")
    if int(told) >= vertex.parallelism:
        raise RestError(
            404, f"Vertex {vertex.vertex_id} has no subtask {told}: its parallelism is {vertex.parallelism}"
        )
    return int(told)
