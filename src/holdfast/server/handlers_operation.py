"""Requests that start something, and those that ask how it went."""

from __future__ import annotations

import logging
import secrets
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from holdfast.checkpoint.savepoint import dispose_savepoint
from holdfast.checkpoint.triggers import CheckpointKind
from holdfast.errors import HoldfastError
from holdfast.server import models_operation as models
from holdfast.server.calls import Call, RestError
from holdfast.server.directories import resolve_inside
from holdfast.server.operation_log import log_course
from holdfast.server.operations import OperationKey, OperationKind
from holdfast.server.served_job import ServedJob
from holdfast.state.handles import SavepointFormat

logger = logging.getLogger(__name__)

_IN_PROGRESS = models.QueueStatus("IN_PROGRESS")
_COMPLETED = models.QueueStatus("COMPLETED")


def trigger_savepoint(call: Call) -> models.TriggerResponse:
    job, body = call.running_job(), call.body or models.SavepointTrigger()
    directory = _directory(job, body.target_directory)
    format_type = body.format_type or SavepointFormat.CANONICAL

    def begin() -> Future[str]:
        return job.gateway.trigger_savepoint(directory, format_type, bool(body.cancel_job))

    return _start(call, OperationKind.SAVEPOINT, body.trigger_id, begin, job)


def stop(call: Call) -> models.TriggerResponse:
    job, body = call.running_job(), call.body or models.StopTrigger()
    directory = _directory(job, body.target_directory)
    format_type = body.format_type or SavepointFormat.CANONICAL

    def begin() -> Future[str]:
        return job.gateway.stop_with_savepoint(directory, bool(body.drain), format_type)

    return _start(call, OperationKind.SAVEPOINT, body.trigger_id, begin, job)


def trigger_checkpoint(call: Call) -> models.TriggerResponse:
    job, body = call.running_job(), call.body or models.CheckpointTrigger()

    def begin() -> Future[int]:
        return job.gateway.trigger_checkpoint(body.checkpoint_type or CheckpointKind.CONFIGURED)

    return _start(call, OperationKind.CHECKPOINT, body.trigger_id, begin, job)


def savepoint_status(call: Call) -> models.SavepointStatus:
    future = _operation(call, OperationKind.SAVEPOINT)
    if not future.done():
        return models.SavepointStatus(_IN_PROGRESS, None)
    failure = _failure(future)
    location = None if failure is not None else str(future.result())
    return models.SavepointStatus(_COMPLETED, models.SavepointInfo(location, failure))


def checkpoint_status(call: Call) -> models.CheckpointTriggerStatus:
    future = _operation(call, OperationKind.CHECKPOINT)
    if not future.done():
        return models.CheckpointTriggerStatus(_IN_PROGRESS, None)
    failure = _failure(future)
    number = None if failure is not None else int(future.result())
    return models.CheckpointTriggerStatus(_COMPLETED, models.CheckpointInfo(number, failure))


def dispose(call: Call) -> models.TriggerResponse:
    path = resolve_inside(call.body.savepoint_path, call.server.registry.directories())

    def begin() -> Future[None]:
        done: Future[None] = Future()
        threading.Thread(target=_dispose, args=(path, done), name="holdfast-disposal", daemon=True).start()
        return done

    return _start(call, OperationKind.DISPOSAL, None, begin)


def disposal_status(call: Call) -> models.DisposalStatus:
    future = _operation(call, OperationKind.DISPOSAL)
    if not future.done():
        return models.DisposalStatus(_IN_PROGRESS, None)
    return models.DisposalStatus(_COMPLETED, models.DisposalInfo(_failure(future)))


def _dispose(path: str, done: Future[None]) -> None:
    try:
        dispose_savepoint(path)
    except BaseException as error:
        done.set_exception(error)
    else:
        done.set_result(None)


def _directory(job: ServedJob, named: str | None) -> str | None:
    """None leaves it to the job's own setting."""
    return None if named is None else resolve_inside(named, job.directories)


def _start(
    call: Call,
    kind: OperationKind,
    trigger_id: str | None,
    begin: Callable[[], Future[Any]],
    job: ServedJob | None = None,
) -> models.TriggerResponse:
    chosen = trigger_id or secrets.token_hex(16)
    job_id = "" if job is None else job.job_id

    def begin_logged() -> Future[Any]:
        logger.info("Trigger %s: a %s was asked for%s", chosen, kind.value, f", of job {job_id}" if job_id else "")
        future = begin()
        future.add_done_callback(lambda done: log_course(chosen, kind, job, done))
        return future

    try:
        call.server.operations.start(OperationKey(kind, job_id, chosen), begin_logged)
    except HoldfastError as error:
        raise RestError(400, str(error)) from error
    return models.TriggerResponse(chosen)


def _operation(call: Call, kind: OperationKind) -> Future[Any]:
    trigger_id = call.parameters["trigger_id"]
    future = call.server.operations.get(OperationKey(kind, call.parameters.get("job_id", ""), trigger_id))
    if future is None:
        raise RestError(404, f"There is no {kind.value} operation with triggerId={trigger_id}")
    return future


def _failure(future: Future[Any]) -> models.FailureCause | None:
    error = future.exception()
    if error is None:
        return None
    name = f"{type(error).__module__}.{type(error).__qualname__}"
    return models.FailureCause(name, "".join(traceback.format_exception(error)))
