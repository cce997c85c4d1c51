"""Jobs that are operated at random while epochs fail and uploads are slow: each row is published once, and nothing is
left behind.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.shared_files import referenced_files
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import JobClient
from holdfast.errors import EpochError, StorageError, StoreVersionError
from holdfast.runtime.epoch import EpochSpec
from holdfast.state.handles import FileHandle, SavepointFormat
from holdfast.state.savepoint_files import SavepointWriter
from holdfast.state.snapshot_files import FileSnapshotWriter
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import published
from tests.job.counting import WatchedSink, counting, counts_of, settings, staged

EPOCHS = [[(row * 7 % 31, row) for row in range(first, first + 10)] for first in range(0, 300, 10)]
_STOPS = 4


def random_settings(dice: random.Random, directory: Path) -> dict[str, str]:
    chosen = {
        "state.backend.type": ["heap", "lmdb", "rocksdb"],
        "execution.checkpointing.incremental": ["true", "false"],
        "execution.checkpointing.interval": ["10 ms", "1 s", "1000000 h"],
        "execution.checkpointing.max-concurrent-checkpoints": ["1", "2", "3"],
        "execution.checkpointing.num-retained": ["1", "2"],
        "execution.checkpointing.data-inline-threshold": ["0 b", "20 kb"],
        "execution.state-recovery.from-local": ["true", "false"],
        "execution.state-recovery.claim-mode": ["CLAIM", "NO_CLAIM"],
        "holdfast.checkpoint.upload-wait": ["1 ms", "5 ms", "60 s"],
    }
    fixed = {
        "execution.checkpointing.tolerable-failed-checkpoints": "100",
        "execution.checkpointing.savepoint-dir": str(directory / "savepoints"),
        "restart-strategy.fixed-delay.attempts": "100",
    }
    return settings(directory, **fixed, **{name: dice.choice(values) for name, values in chosen.items()})


def slow_down(dice: random.Random, monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage takes its time, and fails now and then."""
    longest, failing = dice.choice([0, 0.002, 0.02]), dice.choice([0, 0, 0.01])
    for kind in (FileSnapshotWriter, SavepointWriter):

        def write(self: Any, name: str, data: bytes, shared: bool = False, inner: Any = kind.write) -> FileHandle:
            time.sleep(dice.random() * longest)
            if dice.random() < failing:
                raise StorageError("the disk is full")
            handle: FileHandle = inner(self, name, data, shared)
            return handle

        monkeypatch.setattr(kind, "write", write)


def let_epochs_fail(dice: random.Random, spark: InProcessEngine) -> None:
    chance, left = dice.choice([0, 0.03, 0.1]), 8

    def perhaps(spec: EpochSpec) -> None:
        nonlocal left
        time.sleep(0.002)
        if left and dice.random() < chance:
            left -= 1
            raise dice.choice([EpochError, StoreVersionError, RuntimeError])("a worker died")

    spark.before_epoch = spark.after_epoch = perhaps
    spark.step = dice.choice([1, 20, 200])


def operate(dice: random.Random, client: JobClient, may_stop: bool) -> str | None:
    """Until the job has ended. The savepoint that it was stopped with, if it was."""
    gateway, formats = client._job.gateway, list(SavepointFormat)
    asked: list[Future[Any]] = []
    stop: Future[str] | None = None
    end = time.monotonic() + 60
    while client.is_running():
        assert time.monotonic() < end, "the job hangs"
        time.sleep(dice.random() * 0.05)
        what = dice.random()
        if stop is None and may_stop and what < 0.15:
            stop = gateway.stop_with_savepoint(savepoint_format=dice.choice(formats))
        elif what < 0.3:
            asked.append(gateway.trigger_savepoint(savepoint_format=dice.choice(formats)))
        elif what < 0.5:
            asked.append(gateway.trigger_checkpoint())
        if stop is not None and stop.done() and stop.exception() is not None:
            stop = None
    client.get_job_execution_result().result(30)
    for one in asked:
        one.exception(10)  # each is answered
    return None if stop is None or stop.exception(10) is not None else stop.result()


def left_behind(directory: Path) -> list[Path]:
    """Files of checkpoints, and of savepoints that no complete one refers to."""
    found = [path for path in (directory / "chk").glob("*/*/*") if path.is_file() and path.parent.name != "attempts"]
    for savepoint in (directory / "savepoints").glob("*"):
        complete = (savepoint / "_metadata").exists()
        needed = {"_metadata", *referenced_files(open_snapshot(str(savepoint))[0])} if complete else set()
        files = {path for path in savepoint.rglob("*") if path.is_file()}
        assert needed <= {str(path.relative_to(savepoint)) for path in files}
        found += [path for path in files if str(path.relative_to(savepoint)) not in needed]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_jobs_that_are_operated_at_random(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    dice = random.Random(seed)
    given = random_settings(dice, tmp_path)
    slow_down(dice, monkeypatch)
    let_epochs_fail(dice, in_process)
    path: str | None = None
    for run in range(_STOPS + 1):
        if path is not None:
            given["execution.state-recovery.path"] = path
            given["holdfast.job-id"] = dice.choice([given["holdfast.job-id"], f"job{run}"])
        client = counting(given, EPOCHS, WatchedSink(tmp_path / "out"))
        path = operate(dice, client, may_stop=run < _STOPS)
        if path is None:
            break
    assert published(tmp_path / "out") == counts_of(EPOCHS)
    assert staged(tmp_path / "out") == []
    # Uploads that go on alone find out within a second that nobody waits for them.
    end = time.monotonic() + 10
    while left_behind(tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert left_behind(tmp_path) == []
