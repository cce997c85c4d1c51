"""Metrics of functions for Prometheus. Names are escaped as Flink's reporter does it; groups with a value are labels.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily

from holdfast.job.execution_graph import ExecutionVertex
from holdfast.job.function_metrics import Reading
from holdfast.runtime.metric_values import Scope
from holdfast.server.served_job import ServedJob

_PREFIX = "flink_taskmanager_job_task_operator"
_NO_NAME = re.compile(r"[^a-zA-Z0-9:_]")
_NO_LABEL = re.compile(r"[^a-zA-Z0-9_]")


class FunctionFamilies:
    """All jobs' metrics of functions by their names. Of two that come to one name and the same labels, the first."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}
        self._seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()

    def add(self, job: ServedJob) -> None:
        graph = job.gateway.master.execution_graph
        for vertex in graph.vertices:
            for operator_id in vertex.operator_ids:
                for execution in vertex.executions:
                    labels = _labels(job, vertex, operator_id, graph.names[operator_id], execution.subtask)
                    for reading in graph.metrics.of_subtask(operator_id, execution.subtask):
                        self._add(reading, labels)

    def families(self) -> Iterator[GaugeMetricFamily]:
        yield from self._families.values()

    def _add(self, reading: Reading, labels: dict[str, str]) -> None:
        # As in Flink, the value of a group is in its label alone.
        parts = (_PREFIX, *(name for name, _ in reading.scope), reading.name)
        name = "_".join(_NO_NAME.sub("_", part) for part in parts)
        labels = labels | _labels_of(reading.scope, labels)
        for suffix, value in reading.values.items():
            if isinstance(value, str):
                continue
            full = name + suffix
            sample = full, tuple(sorted(labels.items()))
            if sample not in self._seen:
                self._seen.add(sample)
                family = self._families.setdefault(full, GaugeMetricFamily(full, f"{reading.name} of a function"))
                family.add_sample(full, labels, float(value))


def _labels(
    job: ServedJob, vertex: ExecutionVertex, operator_id: str, operator_name: str, subtask: int
) -> dict[str, str]:
    return {
        "job_id": job.job_id,
        "job_name": job.gateway.name,
        "task_id": vertex.vertex_id,
        "task_name": vertex.name,
        "operator_id": operator_id,
        "operator_name": operator_name,
        "subtask_index": str(subtask),
    }


def _labels_of(scope: Scope, taken: dict[str, str]) -> dict[str, str]:
    """Groups with a value; the innermost of a name counts."""
    labels: dict[str, str] = {}
    for key, value in scope:
        if value is not None:
            name = _NO_LABEL.sub("_", key)
            # A label cannot begin with a digit, and those of the job stay what they are.
            labels[f"_{name}" if name[0].isdigit() or name in taken else name] = value
    return labels
