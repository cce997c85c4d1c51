"""What the history keeps of a job: every answer that is not about the moment."""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from holdfast.server import views_checkpoint, views_job
from holdfast.server.archive import JobArchive
from holdfast.server.handlers_metrics import as_metrics
from holdfast.server.job_metrics import job_metrics
from holdfast.server.served_job import ServedJob
from holdfast.server.vertex_metrics import aggregated_metrics, vertex_metrics

logger = logging.getLogger(__name__)


def archive_job(archive: JobArchive, job: ServedJob) -> None:
    """Called when the job has ended. Whatever goes wrong, those who wait for the job's end are told of it."""
    try:
        archive.write(job.job_id, msgspec.to_builtins(views_job.overview(job)), resources_of(job))
    except Exception:
        logger.exception("The history of job %s could not be kept", job.job_id)


def resources_of(job: ServedJob) -> dict[str, Any]:
    """Answers by the part of the path behind the job's id."""
    vertices = job.gateway.master.execution_graph.vertices
    answers: dict[str, Any] = {
        "": views_job.details(job),
        "/status": {"status": job.gateway.master.history.status.name},
        "/plan": views_job.plan(job),
        "/config": views_job.configuration(job),
        "/exceptions": views_job.exceptions(job, most=20),
        "/accumulators": views_job.accumulators(job),
        "/metrics": as_metrics(job_metrics(job)),
    }
    answers |= {f"/vertices/{v.vertex_id}/metrics": as_metrics(vertex_metrics(job, v)) for v in vertices}
    answers |= {
        f"/vertices/{v.vertex_id}/subtasks/metrics": aggregated_metrics(job, v, v.executions) for v in vertices
    }
    answers |= {f"/vertices/{v.vertex_id}": views_job.vertex_details(job, v) for v in vertices}
    if views_checkpoint.checkpointing_enabled(job):
        answers["/checkpoints"] = views_checkpoint.statistics(job)
        answers["/checkpoints/config"] = views_checkpoint.configuration(job)
        for entry in views_checkpoint.known(job):
            path = f"/checkpoints/details/{entry.checkpoint_id}"
            answers[path] = views_checkpoint.checkpoint(entry, vertices, with_tasks=True)
            answers |= {f"{path}/subtasks/{v.vertex_id}": views_checkpoint.task_details(entry, v) for v in vertices}
    return {path: msgspec.to_builtins(answer) for path, answer in answers.items()}
