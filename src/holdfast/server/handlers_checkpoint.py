"""Requests about the checkpoints of a job."""

from __future__ import annotations

from holdfast.checkpoint.statistics import CheckpointStatistics
from holdfast.server import models_checkpoint as models
from holdfast.server import views_checkpoint
from holdfast.server.requests import Call, RestError
from holdfast.server.served_job import ServedJob


def statistics(call: Call) -> models.CheckpointingStatistics:
    return views_checkpoint.statistics(_with_checkpoints(call))


def configuration(call: Call) -> models.CheckpointConfiguration:
    return views_checkpoint.configuration(_with_checkpoints(call))


def details(call: Call) -> models.Checkpoint:
    job = _with_checkpoints(call)
    vertices = job.gateway.master.execution_graph.vertices
    return views_checkpoint.checkpoint(_checkpoint(call, job), vertices, with_tasks=True)


def task_details(call: Call) -> models.TaskCheckpointDetails:
    job = _with_checkpoints(call)
    return views_checkpoint.task_details(_checkpoint(call, job), call.vertex(job))


def _with_checkpoints(call: Call) -> ServedJob:
    job = call.job()
    if not views_checkpoint.checkpointing_enabled(job):
        raise RestError(404, "Checkpointing has not been enabled.")
    return job


def _checkpoint(call: Call, job: ServedJob) -> CheckpointStatistics:
    told = call.parameters["checkpoint_id"]
    if not (told.isascii() and told.isdigit()):
        raise RestError(400, f"The checkpoint's id is '{told}'; expected a whole number")
    for entry in views_checkpoint.known(job):
        if str(entry.checkpoint_id) == told:
            return entry
    raise RestError(404, f"Could not find checkpointing statistics for checkpoint {told}.")
