"""Requests that start something, and answers about how it goes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from holdfast.checkpoint.triggers import CheckpointKind
from holdfast.state.handles import SavepointFormat

TriggerId = Annotated[str, msgspec.Meta(pattern="^[0-9a-fA-F]{32}$")]
Directory = Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class SavepointTrigger(msgspec.Struct, frozen=True):
    target_directory: Directory | None = msgspec.field(name="target-directory", default=None)
    cancel_job: bool | None = msgspec.field(name="cancel-job", default=None)
    format_type: SavepointFormat | None = msgspec.field(name="formatType", default=None)
    trigger_id: TriggerId | None = msgspec.field(name="triggerId", default=None)


class StopTrigger(msgspec.Struct, frozen=True, rename="camel"):
    target_directory: Directory | None = None
    drain: bool | None = None
    format_type: SavepointFormat | None = None
    trigger_id: TriggerId | None = None


class CheckpointTrigger(msgspec.Struct, frozen=True, rename="camel"):
    checkpoint_type: CheckpointKind | None = None
    trigger_id: TriggerId | None = None


class DisposalRequest(msgspec.Struct, frozen=True, rename="kebab"):
    savepoint_path: Directory


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
    """``location`` of a savepoint that was taken, or ``failure-cause``."""

    location: str | None = None
    failure_cause: FailureCause | None = msgspec.field(name="failure-cause", default=None)


class SavepointStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: SavepointInfo | None


class CheckpointInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    checkpoint_id: int | None = msgspec.field(name="checkpointId", default=None)
    failure_cause: FailureCause | None = msgspec.field(name="failureCause", default=None)


class CheckpointTriggerStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: CheckpointInfo | None


class DisposalInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    failure_cause: FailureCause | None = msgspec.field(name="failure-cause", default=None)


class DisposalStatus(msgspec.Struct, frozen=True):
    status: QueueStatus
    operation: DisposalInfo | None
