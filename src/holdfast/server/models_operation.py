"""Requests that start something, and answers about how it goes. A request with a field that is not known is refused: a
field that is spelled wrongly, and ignored, would stop a job without the savepoint that was asked for."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.checkpoint.snapshot_triggers import CheckpointKind
from holdfast.state.handles import SavepointFormat

TriggerId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")]
#: As many subtasks as an operator can ever have.
Parallelism = Annotated[int, msgspec.Meta(ge=1, le=1 << 15)]
Directory = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class SavepointTrigger(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    target_directory: Directory | None = msgspec.field(name="target-directory", default=None)
    cancel_job: bool | None = msgspec.field(name="cancel-job", default=None)
    format_type: SavepointFormat | None = msgspec.field(name="formatType", default=None)
    trigger_id: TriggerId | None = msgspec.field(name="triggerId", default=None)


class StopTrigger(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    target_directory: Directory | None = None
    drain: bool | None = None
    format_type: SavepointFormat | None = None
    trigger_id: TriggerId | None = None


class CheckpointTrigger(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    checkpoint_type: CheckpointKind | None = None
    trigger_id: TriggerId | None = None


class DisposalRequest(msgspec.Struct, frozen=True, rename="kebab", forbid_unknown_fields=True):
    savepoint_path: Directory


class ParallelismBounds(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """All slots of a job are waited for: it runs with ``upperBound``, and ``lowerBound`` has no effect."""

    upper_bound: Parallelism
    lower_bound: Parallelism = 1


class VertexRequirements(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    parallelism: ParallelismBounds


class TriggerResponse(msgspec.Struct, frozen=True, rename="kebab"):
    request_id: str


class QueueStatus(msgspec.Struct, frozen=True):
    """``id`` is IN_PROGRESS or COMPLETED."""

    id: str


class FailureCause(msgspec.Struct, frozen=True):
    """``serialized-throwable``, a Java object in Flink, is null."""

    class_name: str = msgspec.field(name="class")
    stack_trace: str = msgspec.field(name="stack-trace")
    serialized_throwable: str | None = msgspec.field(name="serialized-throwable", default=None)


class SavepointInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """``location`` of a savepoint that was taken, or ``failure-cause``. ``pickled`` has a line for each state in it
    that is pickled, and says what declares its type.
    """

    location: str | None = None
    failure_cause: FailureCause | None = msgspec.field(name="failure-cause", default=None)
    pickled: list[str] = []


class SavepointStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: SavepointInfo | None


class CheckpointInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    checkpoint_id: int | None = msgspec.field(name="checkpointId", default=None)
    failure_cause: FailureCause | None = msgspec.field(name="failureCause", default=None)


class CheckpointTriggerStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: CheckpointInfo | None


class RescalingInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """``parallelism`` that the job has now, or ``failure-cause``."""

    parallelism: int | None = None
    failure_cause: FailureCause | None = msgspec.field(name="failure-cause", default=None)


class RescalingStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: RescalingInfo | None


class DisposalInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    failure_cause: FailureCause | None = msgspec.field(name="failure-cause", default=None)


class DisposalStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: DisposalInfo | None
