"""Requests about the driver as a whole."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

from holdfast.server import models_cluster as models
from holdfast.server.identity import FLINK_VERSION, REVISION
from holdfast.server.models_job import JobIdsWithStatus, JobIdWithStatus
from holdfast.server.requests import Call
from holdfast.server.views_job import job_ended


def dashboard_configuration(call: Call) -> models.DashboardConfiguration:
    local = time.localtime()
    return models.DashboardConfiguration(
        refresh_interval=call.server.settings.refresh_ms,
        timezone_name=local.tm_zone,
        timezone_offset=local.tm_gmtoff * 1_000,
        flink_version=FLINK_VERSION,
        flink_revision=REVISION,
        features=models.Features(web_submit=False, web_cancel=True, web_rescale=False, web_history=False),
    )


def overview(call: Call) -> models.ClusterOverview:
    states = Counter(str(job["state"]) for job in call.server.registry.overviews())
    ended = {"FINISHED": states["FINISHED"], "CANCELED": states["CANCELED"], "FAILED": states["FAILED"]}
    running = [job for job in call.server.registry.live() if not job_ended(job.gateway.master.history)]
    vertices = [vertex for job in running for vertex in job.gateway.master.execution_graph.vertices]
    executors = {execution.executor for vertex in vertices for execution in vertex.executions if execution.executor}
    return models.ClusterOverview(
        taskmanagers=len(executors),
        slots_total=sum(job.gateway.job.plan.slots for job in running),
        slots_available=0,
        jobs_running=states.total() - sum(ended.values()),
        jobs_finished=ended["FINISHED"],
        jobs_cancelled=ended["CANCELED"],
        jobs_failed=ended["FAILED"],
        flink_version=FLINK_VERSION,
        flink_commit=REVISION,
    )


def jobs(call: Call) -> JobIdsWithStatus:
    return JobIdsWithStatus([JobIdWithStatus(job["jid"], job["state"]) for job in call.server.registry.overviews()])


def jobs_overview(call: Call) -> dict[str, Any]:
    return {"jobs": call.server.registry.overviews()}
