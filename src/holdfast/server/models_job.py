"""Answers about a job, with Flink's field names."""

from __future__ import annotations

import msgspec


class JobIdWithStatus(msgspec.Struct, frozen=True):
    id: str
    status: str


class JobIdsWithStatus(msgspec.Struct, frozen=True):
    jobs: list[JobIdWithStatus]


class JobStatusInfo(msgspec.Struct, frozen=True):
    status: str


class TaskCounts(msgspec.Struct, frozen=True):
    """Subtasks by state."""

    total: int
    created: int = 0
    scheduled: int = 0
    deploying: int = 0
    running: int = 0
    finished: int = 0
    canceling: int = 0
    canceled: int = 0
    failed: int = 0
    reconciling: int = 0
    initializing: int = 0


class JobOverview(msgspec.Struct, frozen=True):
    """``end-time`` is -1 while the job runs."""

    jid: str
    name: str
    job_type: str = msgspec.field(name="jobType")
    scheduler_type: str = msgspec.field(name="schedulerType")
    start_time: int = msgspec.field(name="start-time")
    end_time: int = msgspec.field(name="end-time")
    duration: int
    state: str
    last_modification: int = msgspec.field(name="last-modification")
    tasks: TaskCounts
    pending_operators: int = msgspec.field(name="pending-operators")


class MultipleJobsOverview(msgspec.Struct, frozen=True):
    jobs: list[JobOverview]


class IoMetrics(msgspec.Struct, frozen=True, rename="kebab"):
    """Rows are counted; bytes and times are not, and are 0."""

    read_bytes: int
    read_bytes_complete: bool
    write_bytes: int
    write_bytes_complete: bool
    read_records: int
    read_records_complete: bool
    write_records: int
    write_records_complete: bool
    accumulated_backpressured_time: int
    accumulated_idle_time: int
    accumulated_busy_time: int


class JobVertex(msgspec.Struct, frozen=True):
    id: str
    slot_sharing_group: str = msgspec.field(name="slotSharingGroupId")
    name: str
    max_parallelism: int = msgspec.field(name="maxParallelism")
    parallelism: int
    status: str
    start_time: int = msgspec.field(name="start-time")
    end_time: int = msgspec.field(name="end-time")
    duration: int
    tasks: dict[str, int]
    metrics: IoMetrics


class PlanInput(msgspec.Struct, frozen=True):
    id: str
    num: int
    exchange: str
    ship_strategy: str
    local_strategy: str
    caching: str


class PlanNode(msgspec.Struct, frozen=True):
    id: str
    operator: str
    parallelism: int
    operator_strategy: str
    description: str
    optimizer_properties: dict[str, str]
    inputs: list[PlanInput]


class Plan(msgspec.Struct, frozen=True):
    jid: str
    name: str
    type: str
    nodes: list[PlanNode]


class JobPlanInfo(msgspec.Struct, frozen=True):
    plan: Plan


class JobDetails(msgspec.Struct, frozen=True):
    jid: str
    application_id: str = msgspec.field(name="application-id")
    name: str
    is_stoppable: bool = msgspec.field(name="isStoppable")
    state: str
    job_type: str = msgspec.field(name="job-type")
    scheduler_type: str = msgspec.field(name="schedulerType")
    start_time: int = msgspec.field(name="start-time")
    end_time: int = msgspec.field(name="end-time")
    duration: int
    max_parallelism: int = msgspec.field(name="maxParallelism")
    now: int
    timestamps: dict[str, int]
    vertices: list[JobVertex]
    status_counts: dict[str, int] = msgspec.field(name="status-counts")
    plan: Plan
    pending_operators: int = msgspec.field(name="pending-operators")


class SubtaskDetails(msgspec.Struct, frozen=True):
    subtask: int
    status: str
    attempt: int
    endpoint: str
    start_time: int = msgspec.field(name="start-time")
    end_time: int = msgspec.field(name="end-time")
    duration: int
    metrics: IoMetrics
    taskmanager_id: str = msgspec.field(name="taskmanager-id")
    watermark: int | None


class VertexDetails(msgspec.Struct, frozen=True):
    """``watermark`` of a subtask is not in Flink's answer; null stands for none yet."""

    id: str
    name: str
    parallelism: int
    max_parallelism: int = msgspec.field(name="maxParallelism")
    now: int
    subtasks: list[SubtaskDetails]


class ExecutionConfig(msgspec.Struct, frozen=True, rename="kebab"):
    restart_strategy: str
    job_parallelism: int
    object_reuse_mode: bool
    user_config: dict[str, str]


class JobConfiguration(msgspec.Struct, frozen=True):
    """Values whose keys look like secrets are hidden."""

    jid: str
    name: str
    execution_config: ExecutionConfig = msgspec.field(name="execution-config")


class ExceptionInfo(msgspec.Struct, frozen=True, rename="camel"):
    exception_name: str
    stacktrace: str
    timestamp: int
    failure_labels: dict[str, str]
    task_name: str | None
    endpoint: str | None
    task_manager_id: str | None
    concurrent_exceptions: list[dict[str, str]]


class ExceptionHistory(msgspec.Struct, frozen=True):
    entries: list[ExceptionInfo]
    truncated: bool


class JobExceptions(msgspec.Struct, frozen=True, rename="camel"):
    exception_history: ExceptionHistory


class Accumulator(msgspec.Struct, frozen=True):
    """``type`` is the name of its class, ``value`` the text of its value."""

    name: str
    type: str
    value: str


class JobAccumulators(msgspec.Struct, frozen=True, rename="kebab"):
    """Accumulators of functions are ``user-task-accumulators``; the others are always empty, for clients of Flink."""

    job_accumulators: list[Accumulator]
    user_task_accumulators: list[Accumulator]
    serialized_user_task_accumulators: dict[str, str]


class Empty(msgspec.Struct, frozen=True):
    pass
