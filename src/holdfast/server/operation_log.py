"""Tells the course of an operation in the log, from its trigger id to every acknowledgement and its result."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

from holdfast.checkpoint.statistics import CheckpointStatistics
from holdfast.server.operations import OperationKind
from holdfast.server.served_job import ServedJob
from holdfast.server.views_checkpoint import known

logger = logging.getLogger(__name__)


def log_course(trigger_id: str, kind: OperationKind, job: ServedJob | None, done: Future[Any]) -> None:
    """``done`` has ended. The checkpoint that it was is found by what it gave: a path, or an id."""
    error = done.exception()
    if error is not None:
        logger.warning("Trigger %s: the %s failed: %s", trigger_id, kind.value, error)
        return
    if job is not None:
        for entry in known(job):
            if done.result() in (entry.location, entry.checkpoint_id):
                _log_acknowledgements(trigger_id, job, entry)
    logger.info("Trigger %s: the %s completed: %s", trigger_id, kind.value, done.result())


def _log_acknowledgements(trigger_id: str, job: ServedJob, entry: CheckpointStatistics) -> None:
    names = {operator.operator_id: operator for operator in job.gateway.job.facts.operators}
    logger.info(
        "Trigger %s: it was snapshot %d (%s), whose barrier went through epoch %d",
        trigger_id,
        entry.checkpoint_id,
        entry.checkpoint_type.value,
        entry.epoch,
    )
    for (operator_id, subtask), told in sorted(entry.subtasks.items()):
        operator = names[operator_id]
        logger.info(
            "Trigger %s: '%s' (%d/%d) acknowledged after %d ms, with %d bytes",
            trigger_id,
            operator.name,
            subtask + 1,
            operator.parallelism,
            told.duration,
            told.bytes_written,
        )
