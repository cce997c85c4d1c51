"""The folder of a savepoint is made beside the job."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.checkpoint import savepoint_target
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.savepoint_target import prepare_target
from holdfast.checkpoint.snapshot_triggers import SnapshotTrigger
from holdfast.errors import CheckpointError
from holdfast.state.handles import SnapshotType


def test_whatever_fails_whoever_asked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory: str, job_id: str) -> SavepointLocation:
        raise NotImplementedError

    monkeypatch.setattr(SavepointLocation, "create", staticmethod(fail))
    trigger = SnapshotTrigger(SnapshotType.SAVEPOINT)
    prepare_target(trigger, str(tmp_path), "job", 60, lambda _: None)
    with pytest.raises(CheckpointError, match="NotImplementedError"):
        trigger.outcome.result(10)


def test_a_trigger_that_reached_the_job_does_not_expire(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when the time is over at that very moment: a job would end although whoever asked was told that it would
    not."""
    expiries: list[Callable[[], None]] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, expire: Callable[[], None]) -> None:
            expiries.append(expire)

        def start(self) -> None:
            """A savepoint that was asked for by hand."""

        def cancel(self) -> None:
            """Too late."""

    monkeypatch.setattr(savepoint_target.threading, "Timer", Timer)
    trigger, taken = SnapshotTrigger(SnapshotType.SYNC_SAVEPOINT), threading.Event()

    def take(ready: SnapshotTrigger) -> None:
        expiries[0]()
        taken.set()

    prepare_target(trigger, str(tmp_path), "job", 60, take)
    assert taken.wait(10)
    assert not trigger.outcome.done()
    assert trigger.location is not None
