"""Requests that start something, and those that ask how it went."""

from __future__ import annotations

import logging
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from holdfast.checkpoint.savepoint import dispose_savepoint, pickled_in_savepoint
from holdfast.checkpoint.snapshot_triggers import CheckpointKind, new_trigger_id
from holdfast.errors import HoldfastError
from holdfast.server import models_operation as models
from holdfast.server.directories import ForbiddenDirectoryError, resolve_inside
from holdfast.server.operations import OperationKey, OperationKind
from holdfast.server.requests import Call, RestError
from holdfast.server.resource_requirements import present_requirements, wanted_parallelism
from holdfast.server.served_job import ServedJob
from holdfast.state.handles import SavepointFormat

logger = logging.getLogger(__name__)

_IN_PROGRESS = models.QueueStatus("IN_PROGRESS")
_COMPLETED = models.QueueStatus("COMPLETED")

J = TypeVar("J", bound=ServedJob | None)


def trigger_savepoint(call: Call) -> models.TriggerResponse:
    body = call.body or models.SavepointTrigger()
    format_type = body.format_type or SavepointFormat.CANONICAL

    def begin(job: ServedJob, trigger_id: str) -> Future[str]:
        directory = _directory(job, body.target_directory)
        return job.gateway.trigger_savepoint(directory, format_type, bool(body.cancel_job), trigger_id=trigger_id)

    return _start_in_job(call, OperationKind.SAVEPOINT, body.trigger_id, begin)


def stop(call: Call) -> models.TriggerResponse:
    body = call.body or models.StopTrigger()
    format_type = body.format_type or SavepointFormat.CANONICAL

    def begin(job: ServedJob, trigger_id: str) -> Future[str]:
        directory = _directory(job, body.target_directory)
        return job.gateway.stop_with_savepoint(directory, bool(body.drain), format_type, trigger_id=trigger_id)

    return _start_in_job(call, OperationKind.SAVEPOINT, body.trigger_id, begin)


def trigger_checkpoint(call: Call) -> models.TriggerResponse:
    body = call.body or models.CheckpointTrigger()

    def begin(job: ServedJob, trigger_id: str) -> Future[int]:
        kind = body.checkpoint_type or CheckpointKind.CONFIGURED
        return job.gateway.trigger_checkpoint(kind, trigger_id=trigger_id)

    return _start_in_job(call, OperationKind.CHECKPOINT, body.trigger_id, begin)


def resource_requirements(call: Call) -> dict[str, models.VertexRequirements]:
    return present_requirements(call.running_job().gateway.master.execution_graph.vertices)


def rescale(call: Call) -> models.TriggerResponse:
    def begin(job: ServedJob, trigger_id: str) -> Future[int]:
        vertices, present = job.gateway.master.execution_graph.vertices, job.gateway.job.parallelism
        parallelism = wanted_parallelism(call.body, vertices, present)
        if parallelism != present:
            return job.gateway.rescale(parallelism)
        done: Future[int] = Future()
        done.set_result(present)
        return done

    return _start_in_job(call, OperationKind.RESCALING, None, begin)


def rescaling_status(call: Call) -> models.RescalingStatus:
    future = _operation(call, OperationKind.RESCALING)
    if not future.done():
        return models.RescalingStatus(_IN_PROGRESS, None)
    failure = _failure(future)
    parallelism = None if failure is not None else int(future.result())
    return models.RescalingStatus(_COMPLETED, models.RescalingInfo(parallelism, failure))


def savepoint_status(call: Call) -> models.SavepointStatus:
    future = _operation(call, OperationKind.SAVEPOINT)
    if not future.done():
        return models.SavepointStatus(_IN_PROGRESS, None)
    failure = _failure(future)
    location = None if failure is not None else str(future.result())
    pickled = [] if location is None else pickled_in_savepoint(location)
    return models.SavepointStatus(_COMPLETED, models.SavepointInfo(location, failure, pickled))


def checkpoint_status(call: Call) -> models.CheckpointTriggerStatus:
    future = _operation(call, OperationKind.CHECKPOINT)
    if not future.done():
        return models.CheckpointTriggerStatus(_IN_PROGRESS, None)
    failure = _failure(future)
    number = None if failure is not None else int(future.result())
    return models.CheckpointTriggerStatus(_COMPLETED, models.CheckpointInfo(number, failure))


def dispose(call: Call) -> models.TriggerResponse:
    path = resolve_inside(call.body.savepoint_path, call.server.registry.directories())

    def begin(_: None, trigger_id: str) -> Future[None]:
        done: Future[None] = Future()
        threading.Thread(target=_dispose, args=(path, done), name="holdfast-disposal", daemon=True).start()
        return done

    return _start(call, OperationKey(OperationKind.DISPOSAL, "", new_trigger_id()), lambda: None, begin)


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


def _start_in_job(
    call: Call, kind: OperationKind, trigger_id: str | None, begin: Callable[[ServedJob, str], Future[Any]]
) -> models.TriggerResponse:
    return _start(call, OperationKey(kind, call.job_id, trigger_id or new_trigger_id()), call.running_job, begin)


def _start(
    call: Call, key: OperationKey, find_job: Callable[[], J], begin: Callable[[J, str], Future[Any]]
) -> models.TriggerResponse:
    """For a request that is sent again nothing is looked for: the job may have ended by it."""

    def begin_logged() -> Future[Any]:
        job = find_job()
        about = f", of job {key.job_id}" if key.job_id else ""
        logger.info("Trigger %s: a %s was asked for%s", key.trigger_id, key.kind.value, about)
        future = begin(job, key.trigger_id)
        future.add_done_callback(lambda done: _log_end(key, done))
        return future

    try:
        call.server.operations.start(key, begin_logged)
    except ForbiddenDirectoryError:
        raise
    except HoldfastError as error:
        raise RestError(400, str(error)) from error
    return models.TriggerResponse(key.trigger_id)


def _log_end(key: OperationKey, done: Future[Any]) -> None:
    error = done.exception()
    if error is not None:
        logger.warning("Trigger %s: the %s failed: %s", key.trigger_id, key.kind.value, error)
    else:
        logger.info("Trigger %s: the %s completed: %s", key.trigger_id, key.kind.value, done.result())


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
