from __future__ import annotations

import pytest

from holdfast.checkpoint.failure_manager import CheckpointFailureManager
from holdfast.checkpoint.policy import deletes_checkpoints
from holdfast.checkpoint.reasons import CheckpointFailureReason as Reason

COUNTED = {
    Reason.CHECKPOINT_DECLINED,
    Reason.CHECKPOINT_ASYNC_EXCEPTION,
    Reason.CHECKPOINT_EXPIRED,
    Reason.IO_EXCEPTION,
    Reason.FINALIZE_CHECKPOINT_FAILURE,
}


def test_which_reasons_count() -> None:
    assert {reason for reason in Reason if reason.counts} == COUNTED
    assert all(reason.text for reason in Reason)


def test_by_default_the_first_failure_fails_the_job() -> None:
    assert CheckpointFailureManager(0).failed(1, Reason.CHECKPOINT_EXPIRED)


def test_more_than_the_tolerable_number_in_a_row() -> None:
    manager = CheckpointFailureManager(2)
    assert [manager.failed(number, Reason.IO_EXCEPTION) for number in (1, 2, 3)] == [False, False, True]


def test_the_count_starts_anew_after_the_job_failed() -> None:
    manager = CheckpointFailureManager(1)
    assert [manager.failed(number, Reason.IO_EXCEPTION) for number in (1, 2, 3, 4)] == [False, True, False, True]


def test_a_checkpoint_counts_once() -> None:
    manager = CheckpointFailureManager(1)
    assert not any(manager.failed(1, Reason.CHECKPOINT_DECLINED) for _ in range(5))
    assert manager.failed(2, Reason.CHECKPOINT_DECLINED)


def test_a_newer_success_resets() -> None:
    manager = CheckpointFailureManager(1)
    assert not manager.failed(1, Reason.CHECKPOINT_DECLINED)
    manager.completed(2)
    assert not manager.failed(3, Reason.CHECKPOINT_DECLINED)
    manager.completed(1)  # older than the last success: no reset
    assert manager.failed(4, Reason.CHECKPOINT_DECLINED)


def test_failures_older_than_the_last_success_are_ignored() -> None:
    manager = CheckpointFailureManager(0)
    manager.completed(5)
    assert not manager.failed(4, Reason.CHECKPOINT_EXPIRED)


@pytest.mark.parametrize("reason", [reason for reason in Reason if reason not in COUNTED])
def test_other_reasons_never_fail_the_job(reason: Reason) -> None:
    manager = CheckpointFailureManager(0)
    assert not any(manager.failed(number, reason) for number in range(1, 10))


@pytest.mark.parametrize(
    ("retention", "deleted_on"),
    [
        ("NO_EXTERNALIZED_CHECKPOINTS", {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}),
        ("DELETE_ON_CANCELLATION", {"FINISHED", "CANCELED", "SUSPENDED"}),
        ("RETAIN_ON_CANCELLATION", {"FINISHED"}),
    ],
)
def test_retention(retention: str, deleted_on: set[str]) -> None:
    statuses = {"FINISHED", "CANCELED", "FAILED", "SUSPENDED"}
    assert {status for status in statuses if deletes_checkpoints(retention, status)} == deleted_on
