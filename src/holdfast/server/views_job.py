"""From the course of a job to Flink's answers about it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping

from holdfast.job.execution_graph import Execution, ExecutionState, ExecutionVertex
from holdfast.job.failure_texts import full_text
from holdfast.job.job import FailureRecord, JobHistory, JobStatus
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import EdgeSpec
from holdfast.server import models_job as models
from holdfast.server.served_job import ServedJob

_ENDED = (JobStatus.FINISHED, JobStatus.CANCELED, JobStatus.FAILED)
#: All of Flink's, so that clients find those that they look for.
_JOB_STATUSES = (*(status.name for status in JobStatus), "SUSPENDED", "RECONCILING")
_EXECUTION_STATES = (
    "CREATED", "SCHEDULED", "DEPLOYING", "RUNNING", "FINISHED", "CANCELING", "CANCELED", "FAILED", "RECONCILING",
    "INITIALIZING",
)
_KEPT_EXCEPTIONS = 16
_SECRETS = (
    "password", "secret", "fs.azure.account.key", "apikey", "api-key", "auth-params", "service-key", "token",
    "authorization", "basic-auth", "jaas.config", "http-headers", "access.key", "accesskey", "credential",
)
_HIDDEN = "******"


def millis(seconds: float | None) -> int:
    """-1 for a time that has not come."""
    return -1 if seconds is None else round(seconds * 1_000)


def job_ended(history: JobHistory) -> bool:
    return history.status in _ENDED


def overview(job: ServedJob) -> models.JobOverview:
    history = job.gateway.master.history
    times = _Times(history)
    states = Counter(e.state.value.lower() for v in job.gateway.master.execution_graph.vertices for e in v.executions)
    return models.JobOverview(
        jid=job.job_id,
        name=job.gateway.name,
        job_type="STREAMING",
        scheduler_type="Default",
        start_time=times.start,
        end_time=times.end,
        duration=times.duration,
        state=history.status.name,
        last_modification=times.last,
        tasks=models.TaskCounts(total=sum(states.values()), **states),
        pending_operators=0,
    )


def details(job: ServedJob) -> models.JobDetails:
    master = job.gateway.master
    history, vertices = master.history, master.execution_graph.vertices
    times = _Times(history)
    maximum = {operator.max_parallelism for operator in job.gateway.job.facts.operators}
    return models.JobDetails(
        jid=job.job_id,
        application_id=job.application_id,
        name=job.gateway.name,
        is_stoppable=True,
        state=history.status.name,
        job_type="STREAMING",
        scheduler_type="Default",
        start_time=times.start,
        end_time=times.end,
        duration=times.duration,
        max_parallelism=maximum.pop() if len(maximum) == 1 else -1,
        now=times.now,
        timestamps={**dict.fromkeys(_JOB_STATUSES, 0), **{s.name: millis(t) for s, t in times.reached.items()}},
        vertices=[_vertex(vertex, times.now) for vertex in vertices],
        status_counts=_state_counts(_vertex_state(vertex) for vertex in vertices),
        plan=plan(job).plan,
        pending_operators=0,
    )


def plan(job: ServedJob) -> models.JobPlanInfo:
    spec = job.gateway.job.plan
    home = {o.operator_id: c.operators[0].operator_id for c in spec.chains for o in c.operators}
    entering: dict[str, list[EdgeSpec]] = {}
    for edge in spec.edges:
        entering.setdefault(home.get(edge.target_operator, edge.target_operator), []).append(edge)
    nodes = [
        models.PlanNode(
            id=vertex.vertex_id,
            operator="",
            parallelism=vertex.parallelism,
            operator_strategy="",
            description=vertex.name,
            optimizer_properties={},
            inputs=[
                models.PlanInput(
                    id=home.get(edge.source_operator, edge.source_operator),
                    num=number,
                    exchange="pipelined_bounded",
                    ship_strategy=edge.partitioner.name,
                    local_strategy="",
                    caching="",
                )
                for number, edge in enumerate(entering.get(vertex.vertex_id, ()))
            ],
        )
        for vertex in job.gateway.master.execution_graph.vertices
    ]
    return models.JobPlanInfo(models.Plan(job.job_id, job.gateway.name, "STREAMING", nodes))


def vertex_details(job: ServedJob, vertex: ExecutionVertex) -> models.VertexDetails:
    now = millis(time.time())
    return models.VertexDetails(
        id=vertex.vertex_id,
        name=vertex.name,
        parallelism=vertex.parallelism,
        max_parallelism=vertex.max_parallelism,
        now=now,
        subtasks=[_subtask(execution, now) for execution in vertex.executions],
    )


def configuration(job: ServedJob) -> models.JobConfiguration:
    restart = job.gateway.job.restart
    return models.JobConfiguration(
        jid=job.job_id,
        name=job.gateway.name,
        execution_config=models.ExecutionConfig(
            restart_strategy=restart.kind.value,
            job_parallelism=job.gateway.job.plan.slots,
            object_reuse_mode=False,
            user_config=without_secrets(job.settings),
        ),
    )


def exceptions(job: ServedJob, most: int, labels: Mapping[str, str] | None = None) -> models.JobExceptions:
    """The newest first. Failures have no labels here, so that a filter for labels finds none."""
    failures = [] if labels else list(job.gateway.master.history.failures)
    kept = failures[-_KEPT_EXCEPTIONS:]
    shown = list(reversed(kept))[:most]
    full = job.gateway.job.failures.full_traces
    return models.JobExceptions(
        models.ExceptionHistory([_exception(failure, full) for failure in shown], truncated=len(shown) < len(failures))
    )


def accumulators(job: ServedJob) -> models.JobAccumulators:
    known = job.gateway.master.execution_graph.metrics.accumulators()
    told = [
        models.Accumulator(name, type(accumulator).__name__, str(accumulator.get_local_value()))
        for name, accumulator in sorted(known.items())
    ]
    return models.JobAccumulators([], told, {})


def without_secrets(settings: Mapping[str, str]) -> dict[str, str]:
    return {
        key: _HIDDEN if any(word in key.lower() for word in _SECRETS) else value
        for key, value in sorted(settings.items())
    }


def _exception(failure: FailureRecord, full_traces: bool) -> models.ExceptionInfo:
    error = failure.error
    return models.ExceptionInfo(
        exception_name=f"{type(error).__module__}.{type(error).__qualname__}",
        stacktrace=full_text(error, full_traces),
        timestamp=millis(failure.timestamp),
        failure_labels={},
        task_name=None,
        endpoint=None,
        task_manager_id=None,
        concurrent_exceptions=[],
    )


def _vertex(vertex: ExecutionVertex, now: int) -> models.JobVertex:
    state = _vertex_state(vertex)
    starts = [e.started for e in vertex.executions if e.started is not None]
    ends = [e.ended for e in vertex.executions if e.ended is not None]
    start = millis(min(starts)) if starts else -1
    over = len(ends) == len(vertex.executions) and state is not ExecutionState.RUNNING
    end = millis(max(ends)) if over and ends else -1
    return models.JobVertex(
        id=vertex.vertex_id,
        slot_sharing_group="default",
        name=vertex.name,
        max_parallelism=vertex.max_parallelism,
        parallelism=vertex.parallelism,
        status=state.value,
        start_time=start,
        end_time=end,
        duration=-1 if start < 0 else (end if end >= 0 else now) - start,
        tasks=_state_counts(execution.state for execution in vertex.executions),
        metrics=_io(vertex.executions),
    )


def _vertex_state(vertex: ExecutionVertex) -> ExecutionState:
    """As Flink puts subtasks together: one that failed counts for all, all that finished make it finished."""
    for state in (ExecutionState.FAILED, ExecutionState.CANCELED, ExecutionState.RUNNING, ExecutionState.CREATED):
        if vertex.count(state):
            return state
    return ExecutionState.FINISHED


def _subtask(execution: Execution, now: int) -> models.SubtaskDetails:
    start, end = millis(execution.started), millis(execution.ended)
    return models.SubtaskDetails(
        subtask=execution.subtask,
        status=execution.state.value,
        attempt=execution.attempt,
        endpoint=execution.executor,
        start_time=start,
        end_time=end,
        duration=-1 if start < 0 else (end if end >= 0 else now) - start,
        metrics=_io((execution,)),
        taskmanager_id=execution.executor,
        watermark=None if execution.watermark == MIN_WATERMARK else execution.watermark,
    )


def _io(executions: Iterable[Execution]) -> models.IoMetrics:
    told = list(executions)
    return models.IoMetrics(
        read_bytes=0,
        read_bytes_complete=False,
        write_bytes=0,
        write_bytes_complete=False,
        read_records=sum(e.rows_in for e in told),
        read_records_complete=True,
        write_records=sum(e.rows_out for e in told),
        write_records_complete=True,
        accumulated_backpressured_time=0,
        accumulated_idle_time=0,
        accumulated_busy_time=0,
    )


def _state_counts(states: Iterable[ExecutionState]) -> dict[str, int]:
    return {**dict.fromkeys(_EXECUTION_STATES, 0), **Counter(state.value for state in states)}


class _Times:
    """When a job began and ended, in milliseconds."""

    def __init__(self, history: JobHistory) -> None:
        self.now = millis(time.time())
        self.reached = dict(history.timestamps)
        moments = [millis(moment) for moment in self.reached.values()] or [self.now]
        self.start, self.last = min(moments), max(moments)
        self.end = millis(self.reached.get(history.status)) if job_ended(history) else -1
        self.duration = (self.end if self.end >= 0 else self.now) - self.start
