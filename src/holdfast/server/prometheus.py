"""Numbers about jobs for Prometheus, under the names of Flink's reporter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.server.job_metrics import EXTERNAL_PATH, job_metrics
from holdfast.server.known_jobs import JobRegistry
from holdfast.server.prometheus_functions import FunctionFamilies
from holdfast.server.served_job import ServedJob
from holdfast.server.views_job import job_ended

CONTENT_TYPE = CONTENT_TYPE_LATEST
_JOB_LABELS = ("job_id", "job_name")
_TASK_LABELS = (*_JOB_LABELS, "task_id", "task_name", "subtask_index")


def exposition(registry: JobRegistry) -> bytes:
    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(_JobCollector(registry))
    return generate_latest(collectors)


class _JobCollector(Collector):
    """Jobs of this driver; what has ended there is told until the driver ends."""

    def __init__(self, registry: JobRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[GaugeMetricFamily]:
        jobs = self._registry.live()
        running = GaugeMetricFamily("flink_jobmanager_numRunningJobs", "Jobs that have not ended")
        running.add_metric((), sum(not job_ended(job.gateway.master.history) for job in jobs))
        yield running
        yield from _of_jobs(jobs)
        yield from _of_subtasks(jobs)
        functions = FunctionFamilies()
        for job in jobs:
            functions.add(job)
        yield from functions.families()


def _of_jobs(jobs: list[ServedJob]) -> Iterator[GaugeMetricFamily]:
    families: dict[str, GaugeMetricFamily] = {}
    for job in jobs:
        for name, value in job_metrics(job).items():
            if name == EXTERNAL_PATH:
                continue
            full = f"flink_jobmanager_job_{name}"
            family = families.setdefault(full, GaugeMetricFamily(full, name, labels=_JOB_LABELS))
            family.add_metric((job.job_id, job.gateway.name), float(value))
    yield from families.values()


def _of_subtasks(jobs: list[ServedJob]) -> Iterator[GaugeMetricFamily]:
    rows_in = GaugeMetricFamily(
        "flink_taskmanager_job_task_numRecordsIn", "Rows read since the attempt began", labels=_TASK_LABELS
    )
    rows_out = GaugeMetricFamily(
        "flink_taskmanager_job_task_numRecordsOut", "Rows given since the attempt began", labels=_TASK_LABELS
    )
    watermark = GaugeMetricFamily(
        "flink_taskmanager_job_task_currentInputWatermark", "Event time, in milliseconds", labels=_TASK_LABELS
    )
    for job in jobs:
        for vertex in job.gateway.master.execution_graph.vertices:
            for execution in vertex.executions:
                labels = (job.job_id, job.gateway.name, vertex.vertex_id, vertex.name, str(execution.subtask))
                rows_in.add_metric(labels, execution.rows_in)
                rows_out.add_metric(labels, execution.rows_out)
                if execution.watermark != MIN_WATERMARK:
                    watermark.add_metric(labels, execution.watermark)
    yield from (rows_in, rows_out, watermark)
