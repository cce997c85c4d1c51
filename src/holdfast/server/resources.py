"""Every address of the server, once: the application, its OpenAPI description and the reference page are made of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from holdfast.server import handlers_checkpoint, handlers_cluster, handlers_job, handlers_metrics, handlers_operation
from holdfast.server import models_checkpoint as checkpoint_models
from holdfast.server import models_job as job_models
from holdfast.server import models_operation as operation_models
from holdfast.server.models_cluster import AggregatedMetric, ClusterOverview, DashboardConfiguration, Metric
from holdfast.server.requests import Call

_JOB = "/jobs/{job_id}"
_NOT_FOUND = {404: "There is no such job"}
_ENDED = {400: "The request is malformed, or cannot be begun", 404: "There is no such job", 409: "The job has ended"}


@dataclass(frozen=True)
class Query:
    name: str
    description: str


@dataclass(frozen=True)
class Resource:
    """``answer`` and ``body`` are types that msgspec encodes and describes. ``errors`` are the statuses that it has
    beside those of all resources."""

    method: str
    path: str
    handler: Callable[[Call], Any]
    summary: str
    answer: Any
    status: int = 200
    body: Any = None
    body_required: bool = False
    queries: tuple[Query, ...] = ()
    errors: tuple[tuple[int, str], ...] = ()


def type_name(kind: Any) -> str:
    """The name of an answer's or a body's type, for people."""
    elements = getattr(kind, "__args__", ())
    if not elements:
        return str(kind.__name__)
    return f"{'object' if kind.__origin__ is dict else 'list'} of {elements[-1].__name__}"


def fields_of(kind: Any) -> list[str]:
    """Names of the fields of a body; of its elements, where it is an object or list of them."""
    elements = getattr(kind, "__args__", ())
    return [field.encode_name for field in msgspec.structs.fields(elements[-1] if elements else kind)]


def _read(
    path: str,
    handler: Callable[[Call], Any],
    answer: Any,
    summary: str,
    errors: dict[int, str] | None = None,
    queries: tuple[Query, ...] = (),
) -> Resource:
    told = errors if errors is not None else _NOT_FOUND if path.startswith(_JOB) else {}
    return Resource("GET", path, handler, summary, answer, queries=queries, errors=tuple(told.items()))


def _start(path: str, handler: Callable[[Call], Any], body: type, summary: str) -> Resource:
    return Resource(
        "POST", path, handler, summary, operation_models.TriggerResponse, 202, body, errors=tuple(_ENDED.items())
    )


_GET = Query("get", "names with commas between them")
_CHECKPOINT_MISSING = {400: "The id is not a number", 404: "No such job or checkpoint, or checkpointing is off"}

RESOURCES: tuple[Resource, ...] = (
    _read("/config", handlers_cluster.dashboard_configuration, DashboardConfiguration, "Settings of the page"),
    _read("/overview", handlers_cluster.overview, ClusterOverview, "Executors, slots and jobs in numbers"),
    _read("/jobs", handlers_cluster.jobs, job_models.JobIdsWithStatus, "All jobs, with their states"),
    _read(
        "/jobs/overview",
        handlers_cluster.jobs_overview,
        job_models.MultipleJobsOverview,
        "All jobs with times and numbers of subtasks, those of the history too",
    ),
    _read(_JOB, handlers_job.details, job_models.JobDetails, "A job with its vertices and its plan"),
    Resource(
        "PATCH",
        _JOB,
        handlers_job.cancel,
        "Cancel a job",
        job_models.Empty,
        202,
        queries=(Query("mode", "cancel, which is the default; stop is answered with 308"),),
        errors=(
            (308, "Stopping is done by POST to /stop"),
            (400, "The mode is not known"),
            (404, "There is no such job"),
            (409, "The job has ended otherwise"),
        ),
    ),
    _read(f"{_JOB}/status", handlers_job.status, job_models.JobStatusInfo, "The state of a job"),
    _read(f"{_JOB}/plan", handlers_job.plan, job_models.JobPlanInfo, "The graph of a job"),
    _read(f"{_JOB}/config", handlers_job.configuration, job_models.JobConfiguration, "The settings of a job"),
    _read(
        f"{_JOB}/exceptions",
        handlers_job.exceptions,
        job_models.JobExceptions,
        "The failures of a job, the newest first",
        {400: "A query parameter is malformed", **_NOT_FOUND},
        (
            Query("maxExceptions", "how many to show; 20 unless told"),
            Query("failureLabelFilter", "label:value pairs with commas between them"),
        ),
    ),
    _read(
        f"{_JOB}/accumulators",
        handlers_job.accumulators,
        job_models.JobAccumulators,
        "Accumulators of the present attempt, of all subtasks together",
        {400: "Two operators gave a name to accumulators of two kinds", **_NOT_FOUND},
    ),
    _read(
        f"{_JOB}/metrics",
        handlers_metrics.of_job,
        list[Metric],
        "Names of metrics, or values of those asked for",
        queries=(_GET,),
    ),
    _read(
        f"{_JOB}/vertices/{{vertex_id}}",
        handlers_job.vertex,
        job_models.VertexDetails,
        "A vertex with its subtasks",
        {404: "No such job or vertex"},
    ),
    _read(
        f"{_JOB}/vertices/{{vertex_id}}/metrics",
        handlers_metrics.of_vertex,
        list[Metric],
        "Names of metrics of all subtasks, their numbers before them, or values of those asked for",
        {404: "No such job or vertex"},
        (_GET,),
    ),
    _read(
        f"{_JOB}/vertices/{{vertex_id}}/subtasks/metrics",
        handlers_metrics.of_subtasks,
        list[AggregatedMetric],
        "Names of metrics of subtasks, or what those asked for are over the subtasks",
        {400: "A query parameter is malformed", 404: "No such job, vertex or subtask"},
        (
            _GET,
            Query("agg", "some of min, max, avg, sum and skew, with commas between them; all of them unless told"),
            Query("subtasks", "numbers and ranges of subtasks with commas between them; all of them unless told"),
        ),
    ),
    _read(
        f"{_JOB}/vertices/{{vertex_id}}/subtasks/{{subtask}}/metrics",
        handlers_metrics.of_subtask,
        list[Metric],
        "Names of metrics of a subtask, or values of those asked for",
        {400: "The subtask is not a number", 404: "No such job, vertex or subtask"},
        (_GET,),
    ),
    _read(
        f"{_JOB}/checkpoints",
        handlers_checkpoint.statistics,
        checkpoint_models.CheckpointingStatistics,
        "Checkpoints and savepoints: counts, summary, the latest and the last ten",
        {404: "No such job, or checkpointing is off"},
    ),
    _start(
        f"{_JOB}/checkpoints",
        handlers_operation.trigger_checkpoint,
        operation_models.CheckpointTrigger,
        "Take a checkpoint",
    ),
    _read(
        f"{_JOB}/checkpoints/config",
        handlers_checkpoint.configuration,
        checkpoint_models.CheckpointConfiguration,
        "Settings of checkpoints",
        {404: "No such job, or checkpointing is off"},
    ),
    _read(
        f"{_JOB}/checkpoints/details/{{checkpoint_id}}",
        handlers_checkpoint.details,
        checkpoint_models.Checkpoint,
        "A checkpoint with the parts of all vertices",
        _CHECKPOINT_MISSING,
    ),
    _read(
        f"{_JOB}/checkpoints/details/{{checkpoint_id}}/subtasks/{{vertex_id}}",
        handlers_checkpoint.task_details,
        checkpoint_models.TaskCheckpointDetails,
        "The part of a vertex in a checkpoint, with its subtasks",
        _CHECKPOINT_MISSING,
    ),
    _read(
        f"{_JOB}/checkpoints/{{trigger_id}}",
        handlers_operation.checkpoint_status,
        operation_models.CheckpointTriggerStatus,
        "How a checkpoint that was asked for went",
        {404: "No such operation"},
    ),
    _start(
        f"{_JOB}/savepoints",
        handlers_operation.trigger_savepoint,
        operation_models.SavepointTrigger,
        "Take a savepoint, and cancel the job behind it where asked",
    ),
    _read(
        f"{_JOB}/savepoints/{{trigger_id}}",
        handlers_operation.savepoint_status,
        operation_models.SavepointStatus,
        "How a savepoint, or a stop with one, went",
        {404: "No such operation"},
    ),
    _start(f"{_JOB}/stop", handlers_operation.stop, operation_models.StopTrigger, "Stop the job with a savepoint"),
    _read(
        f"{_JOB}/resource-requirements",
        handlers_operation.resource_requirements,
        dict[str, operation_models.VertexRequirements],
        "The parallelism of every vertex, by its id",
        {404: "There is no such job", 409: "The job has ended"},
    ),
    Resource(
        "PUT",
        f"{_JOB}/resource-requirements",
        handlers_operation.rescale,
        "Take a checkpoint, and go on from it with another parallelism; the same upper bound for all vertices",
        operation_models.TriggerResponse,
        body=dict[str, operation_models.VertexRequirements],
        body_required=True,
        errors=tuple(_ENDED.items()),
    ),
    _read(
        f"{_JOB}/rescaling/{{trigger_id}}",
        handlers_operation.rescaling_status,
        operation_models.RescalingStatus,
        "How a change of the parallelism went",
        {404: "No such operation"},
    ),
    Resource(
        "POST",
        "/savepoint-disposal",
        handlers_operation.dispose,
        "Delete a savepoint",
        operation_models.TriggerResponse,
        body=operation_models.DisposalRequest,
        body_required=True,
        errors=((400, "The path is missing"), (403, "The path is in none of the directories that requests may name")),
    ),
    _read(
        "/savepoint-disposal/{trigger_id}",
        handlers_operation.disposal_status,
        operation_models.DisposalStatus,
        "How the deletion of a savepoint went",
        {404: "No such operation"},
    ),
)
