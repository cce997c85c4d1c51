"""Savepoints that take their time, while the job, its leadership and its timers go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.checkpoint.leadership import DirectoryLeadership
from holdfast.checkpoint.reasons import CheckpointFailureReason
from holdfast.checkpoint.savepoint import SavepointLocation
from holdfast.checkpoint.storage import open_snapshot
from holdfast.common import JobClient, Types, WatermarkStrategy
from holdfast.datastream import KeyedProcessFunction
from holdfast.errors import CheckpointError
from holdfast.runtime import prepared
from holdfast.runtime.epoch import EpochSpec
from holdfast.state.entry_strategies import PreparedEntries
from holdfast.state.handles import SavepointFormat
from holdfast.state.rocksdb.snapshot import PreparedImage
from holdfast.state.savepoint_files import SavepointNotes
from holdfast.storage.patience import Patience
from holdfast.testing.chaos.processes import wait_until
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import PAIR, Scripted, environment, published
from tests.job.counting import EPOCHS, WatchedSink, counts_of, settings, staged
from tests.job.test_savepoints import resume, start, status, wait_for_rows

NEVER = "1000000 h"


def hold_uploads(monkeypatch: pytest.MonkeyPatch, release: threading.Event) -> None:
    """Snapshots of entries are not stored before ``release``."""
    write = PreparedEntries.write

    def held(self: PreparedEntries, *arguments: Any) -> Any:
        release.wait(30)
        return write(self, *arguments)

    monkeypatch.setattr(PreparedEntries, "write", held)


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """What a held upload waits for."""
    event = threading.Event()
    yield event
    event.set()


class Doubt:
    """Whether it is known that the driver leads."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.present = False
        monkeypatch.setattr(DirectoryLeadership, "in_doubt", property(lambda _: self.present))

    def for_a_moment(self) -> None:
        self.present = True
        threading.Timer(0.3, self.end).start()

    def end(self) -> None:
        self.present = False


def test_a_stop_waits_until_it_is_known_who_leads(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = Doubt(monkeypatch)
    client = start(tmp_path, **{"execution.checkpointing.interval": NEVER})
    wait_for_rows(client, 3)
    doubt.present = True
    stopped = client.stop_with_savepoint(False)
    time.sleep(0.3)
    assert not stopped.done()
    doubt.end()
    path = stopped.result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 1])


@pytest.mark.parametrize("stop", [True, False])
def test_a_directory_that_does_not_answer_holds_up_nothing(
    in_process: InProcessEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: threading.Event,
    stop: bool,
) -> None:
    create = SavepointLocation.create

    def hanging(directory: str, job_id: str) -> SavepointLocation:
        release.wait(30)
        return create(directory, job_id)

    monkeypatch.setattr(SavepointLocation, "create", hanging)
    in_process.step = 1
    client = start(tmp_path, **{"execution.checkpointing.timeout": "500 ms"})
    wait_for_rows(client, 2)
    asked = client.stop_with_savepoint(False) if stop else client.trigger_savepoint()
    wait_for_rows(client, len(client.get_history().epochs) + 5)
    with pytest.raises(CheckpointError, match=r"After 0.5 s the directory .*/savepoints has not answered") as failed:
        asked.result(30)
    assert failed.value.reason is CheckpointFailureReason.CHECKPOINT_EXPIRED
    assert client.is_running() and client.get_history().restarts == 0
    release.set()
    # What appears in the end is removed, and the next one is served.
    target = tmp_path / "savepoints"
    wait_until(lambda: (target.exists() and not any(target.iterdir())) or None, 20, "an empty directory")
    assert Path(client.trigger_savepoint().result(30), "_metadata").exists()
    client.cancel().result(30)


@pytest.mark.parametrize("driver_too", [False, True], ids=["tasks", "tasks and driver"])
def test_a_storage_that_hangs_costs_the_stop_and_not_the_job(
    in_process: InProcessEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    release: threading.Event,
    driver_too: bool,
) -> None:
    """The checkpoint timeout ends the wait of the tasks, and that of the driver, also where the driver's own looks at
    the storage hang.
    """
    monkeypatch.setattr(Patience, "SECONDS", 0.3)
    in_process.step = 100
    hold_uploads(monkeypatch, release)
    if driver_too:
        for name in ("find", "give_up"):
            hang(monkeypatch, name, release)
    client = start(tmp_path, **{"execution.checkpointing.interval": NEVER, "execution.checkpointing.timeout": "1 s"})
    wait_for_rows(client, 3)
    with pytest.raises(CheckpointError, match="expired before completing"):
        client.stop_with_savepoint(False).result(30)
    wait_for_rows(client, len(client.get_history().epochs) + 3)
    assert client.is_running() and client.get_history().restarts == 0
    release.set()
    in_process.step = 0
    path = client.stop_with_savepoint(False).result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS[: open_snapshot(path)[0].epoch - 2])
    resume(tmp_path, path)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def hang(monkeypatch: pytest.MonkeyPatch, name: str, release: threading.Event) -> None:
    """Let a call to the notes of savepoints hang."""
    original = getattr(SavepointNotes, name)

    def hanging(self: SavepointNotes, *arguments: Any) -> Any:
        release.wait(30)
        return original(self, *arguments)

    monkeypatch.setattr(SavepointNotes, name, hanging)


def test_a_storage_that_hangs_fails_the_last_checkpoint(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    in_process.step = 100
    hold_uploads(monkeypatch, release)
    given = {"execution.checkpointing.interval": NEVER, "execution.checkpointing.timeout": "1 s"}
    client = start(tmp_path, ends=True, **given)
    wait_until(lambda: client.get_history().restarts or None, 20, "a restart")
    failure = client.get_history().failures[0]
    assert "expired before completing" in str(failure.error)
    in_process.step = 0
    release.set()
    client.get_job_execution_result().result(30)
    assert published(tmp_path / "out") == counts_of(EPOCHS)


def test_the_last_checkpoint_waits_until_it_is_known_who_leads(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = Doubt(monkeypatch)

    def before_epoch(spec: EpochSpec) -> None:
        if spec.epoch == len(EPOCHS):
            doubt.for_a_moment()

    in_process.before_epoch = before_epoch
    client = start(tmp_path, ends=True, **{"execution.checkpointing.interval": NEVER})
    client.get_job_execution_result().result(30)
    assert client.get_history().restarts == 0
    assert published(tmp_path / "out") == counts_of(EPOCHS)


class Ticking(KeyedProcessFunction):
    """Emits one row for every second of a key."""

    def process_element(self, value: Any, ctx: KeyedProcessFunction.Context) -> None:
        timers = ctx.timer_service()
        timers.register_processing_time_timer(timers.current_processing_time() + 1)

    def on_timer(self, timestamp: int, ctx: KeyedProcessFunction.OnTimerContext) -> Iterable[tuple[int, int]]:
        ctx.timer_service().register_processing_time_timer(timestamp + 1_000)
        yield ctx.get_current_key(), timestamp


def ticking(given: dict[str, str], output: Path) -> JobClient:
    env = environment(**given)
    rows = env.from_source(Scripted([[(1, 1)]], ends=False), WatermarkStrategy.no_watermarks(), "rows").uid("rows")
    ticks = rows.key_by(lambda row: row[0], Types.LONG()).process(Ticking(), PAIR).uid("ticks")
    ticks.sink_to(WatchedSink(output)).uid("sink")
    return env.execute_async("ticking")


@pytest.mark.parametrize("interval", ["10 ms", None])
def test_no_timer_fires_behind_the_savepoint_of_a_stop(
    in_process: InProcessEngine, tmp_path: Path, interval: str | None
) -> None:
    """The timers are in it, and fire where the job goes on."""
    out = tmp_path / "out"
    savepoints = {"execution.checkpointing.savepoint-dir": str(tmp_path / "savepoints")}
    given = settings(tmp_path, **savepoints, **{"restart-strategy.type": "none"})
    if interval is None:
        del given["execution.checkpointing.interval"]
    client = ticking(given, out)
    wait_for_rows(client, 5)
    path = client.stop_with_savepoint(False).result(30)
    client.get_job_execution_result().result(30)
    assert staged(out) == []
    ticks = len(published(out))
    assert ticks > 0
    again = ticking({**given, "execution.state-recovery.path": path, "holdfast.job-id": "next"}, out)
    wait_for_rows(again, 5)
    again.stop_with_savepoint(False).result(30)
    times = [time for _, time in published(out)]
    assert len(times) > ticks
    assert times == list(range(times[0], times[0] + 1_000 * len(times), 1_000)), "each second once"


def test_a_native_savepoint_outlasts_checkpoints_that_complete_meanwhile(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    write = PreparedImage.write

    def held(self: PreparedImage, *arguments: Any) -> Any:
        if self.request.checkpoint_type.is_savepoint:
            release.wait(30)
        return write(self, *arguments)

    monkeypatch.setattr(PreparedImage, "write", held)
    given = {
        "state.backend.type": "rocksdb",
        "holdfast.checkpoint.upload-wait": "100 ms",
        "execution.checkpointing.interval": NEVER,
        "execution.checkpointing.max-concurrent-checkpoints": "2",
    }
    client = start(tmp_path, **given)
    wait_for_rows(client, 3)
    in_process.step = 0
    asked = client._job.gateway.trigger_savepoint(savepoint_format=SavepointFormat.NATIVE)
    for _ in range(2):
        wait_for_rows(client, len(client.get_history().epochs) + 2)
        client.trigger_checkpoint().result(30)
    wait_for_rows(client, len(client.get_history().epochs) + 2)
    assert not asked.done()
    release.set()
    path = asked.result(30)
    assert list((tmp_path / "local").glob("*/*/*/savepoints/*")) == [], "what was pinned for it is gone"
    client.cancel().result(30)
    resume(tmp_path, path, **{"holdfast.job-id": "next", "state.backend.type": "rocksdb"})
    # Rows behind the savepoint come from both jobs, and are the same.
    assert set(published(tmp_path / "out")) == set(counts_of(EPOCHS))


def test_a_savepoint_that_expires_leaves_no_folder(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    write = prepared.write_keyed_tables

    def held(*arguments: Any) -> Any:
        release.wait(30)
        return write(*arguments)

    monkeypatch.setattr(prepared, "write_keyed_tables", held)
    given = {"holdfast.checkpoint.upload-wait": "1 ms", "execution.checkpointing.timeout": "10 s"}
    client = start(tmp_path, **given, **{"execution.checkpointing.interval": NEVER})
    wait_for_rows(client, 3)
    with pytest.raises(CheckpointError, match="expired before completing"):
        client.trigger_savepoint().result(30)
    release.set()
    await_uploads()
    assert list((tmp_path / "savepoints").iterdir()) == []
    assert status(client) == "RUNNING"
    client.cancel().result(30)


def test_a_checkpoint_that_waits_for_another_does_not_keep_an_idle_job_busy(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    hold_uploads(monkeypatch, release)
    given = {"holdfast.checkpoint.upload-wait": "1 ms", "holdfast.epoch.idle-wait": "200 ms"}
    client = start(tmp_path, **given, **{"execution.checkpointing.interval": NEVER})
    wait_for_rows(client, len(EPOCHS) + 1)
    in_process.step = 0
    asked = [client.trigger_checkpoint() for _ in range(2)]
    wait_for_rows(client, len(client.get_history().epochs) + 2)
    before = len(client.get_history().epochs)
    time.sleep(1)
    assert len(client.get_history().epochs) - before <= 6
    release.set()
    assert asked[0].result(30) < asked[1].result(30)
    client.cancel().result(30)


def test_a_doubt_about_who_leads_does_not_keep_an_idle_job_busy(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doubt = Doubt(monkeypatch)
    client = start(tmp_path, **{"holdfast.epoch.idle-wait": "200 ms"})
    wait_for_rows(client, len(EPOCHS) + 1)
    doubt.present = True
    asked = client.trigger_savepoint()
    wait_for_rows(client, len(client.get_history().epochs) + 2)
    before = len(client.get_history().epochs)
    time.sleep(1)
    assert len(client.get_history().epochs) - before <= 6
    doubt.end()
    assert Path(asked.result(30)).exists()
    client.cancel().result(30)


def test_an_upload_that_outlasts_its_job_leaves_no_files(
    in_process: InProcessEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: threading.Event
) -> None:
    hold_uploads(monkeypatch, release)
    given = {"holdfast.checkpoint.upload-wait": "1 ms", "execution.checkpointing.data-inline-threshold": "0 b"}
    client = start(tmp_path, **given, **{"execution.checkpointing.interval": NEVER})
    wait_for_rows(client, 3)
    in_process.step = 0
    asked = client.trigger_checkpoint()
    wait_for_rows(client, len(client.get_history().epochs) + 2)
    client.cancel().result(30)
    assert asked.exception(30) is not None
    release.set()
    await_uploads()
    left = [path for path in (tmp_path / "chk/job").glob("*/*") if path.parent.name != "attempts"]
    assert left == []


def await_uploads() -> None:
    """Uploads that go on alone find within a second that it is in vain."""
    end = time.monotonic() + 10
    names = ("upload-", "beat-")
    while any(thread.name.startswith(names) for thread in threading.enumerate()) and time.monotonic() < end:
        time.sleep(0.01)
