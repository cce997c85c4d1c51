"""A job whose sources have nothing runs no epoch for that, and reads what comes as soon as the driver sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Duration, Types, WatermarkStrategy
from holdfast.common.job_client import JobClient
from holdfast.connectors.files.tree import FileTree
from holdfast.connectors.files.watch import TreeWatch
from holdfast.datastream import KeyedProcessFunction, RuntimeContext, SourceFunction
from holdfast.datastream.connectors.file_system import FileSink, FileSource
from holdfast.job.quiet_sources import QuietSources
from holdfast.runtime.source import SourceWatch
from holdfast.testing.in_process import InProcessEngine
from tests.integration.programs import environment, published
from tests.job.counting import settings


class Sign(SourceWatch):
    """Shows what a test says; an exception is raised."""

    def __init__(self, settles_ms: int = 0) -> None:
        self.shown: Any = 0
        self.settles_ms = settles_ms
        self.closed = False

    def look(self) -> Hashable:
        if isinstance(self.shown, Exception):
            raise self.shown
        return self.shown

    def close(self) -> None:
        self.closed = True


class Watched(SourceFunction):
    def __init__(self, sign: SourceWatch | None) -> None:
        self._sign = sign

    def read(self, limit: Any) -> Iterator[list[Any]]:
        return iter(())

    def watch(self) -> SourceWatch | None:
        return self._sign


class Clock:
    now = 1_000

    def __call__(self) -> int:
        return self.now


def test_the_epoch_behind_the_first_look_counts() -> None:
    clock = Clock()
    sources = QuietSources([Watched(Sign())], clock)
    assert not sources.had_nothing_since(900)
    assert sources.had_nothing_since(1_000)


def test_a_change_wants_an_epoch_that_begins_when_it_has_settled() -> None:
    clock, sign = Clock(), Sign(settles_ms=300)
    sources = QuietSources([Watched(Sign()), Watched(sign)], clock)
    assert not sources.had_nothing_since(1_000)
    assert sources.had_nothing_since(1_300)
    clock.now, sign.shown = 5_000, 1
    assert not sources.had_nothing_since(4_900)
    assert not sources.had_nothing_since(5_299)
    assert sources.had_nothing_since(5_300)


@pytest.mark.parametrize(("watches", "visible"), [([Sign()], True), ([Sign(), None], False), ([], True)])
def test_all_of_them_have_to_be_visible(watches: list[SourceWatch | None], visible: bool) -> None:
    assert QuietSources([Watched(watch) for watch in watches], Clock()).visible is visible


def test_an_error_is_a_change_and_so_is_its_end() -> None:
    clock, sign = Clock(), Sign()
    sources = QuietSources([Watched(sign)], clock)
    assert not sources.had_nothing_since(0)
    for shown in (RuntimeError("no broker"), RuntimeError("no broker"), 0):
        clock.now, sign.shown = clock.now + 1_000, shown
        assert not sources.had_nothing_since(clock.now - 1)
    assert sources.had_nothing_since(clock.now)


def test_watches_are_closed_with_the_attempt() -> None:
    sign = Sign()
    QuietSources([Watched(sign)], Clock()).close()
    assert sign.closed


def test_a_listing_changes_with_names_and_sizes(tmp_path: Path) -> None:
    watch = TreeWatch(FileTree([str(tmp_path)]), 1_000)
    seen = [watch.look()]
    for change in (
        lambda: (tmp_path / "a").write_text("1"),
        lambda: (tmp_path / "b").write_text("1"),
        lambda: (tmp_path / "a").write_text("12"),
        lambda: (tmp_path / "b").unlink(),
    ):
        change()
        seen.append(watch.look())
    (tmp_path / "_hidden").write_text("1")
    assert len(set(seen)) == 5
    assert watch.look() == seen[-1]


# Whole jobs. Nothing in them waits for a time: what is quiet is quiet for as long as the test looks.


class Epochs:
    """What a job ran, by epoch."""

    def __init__(self, engine: InProcessEngine) -> None:
        self._engine = engine

    def settled(self) -> int:
        """The number of epochs once it has been the same for a moment."""
        count, since = len(self._engine.epochs), time.monotonic()
        deadline = since + 60
        while time.monotonic() < since + 0.4:
            assert time.monotonic() < deadline, "epochs go on although there is nothing to read"
            if len(self._engine.epochs) != count:
                count, since = len(self._engine.epochs), time.monotonic()
            time.sleep(0.02)
        return count


def reading(directory: Path, shape: Callable[[Any], Any], **changes: str) -> JobClient:
    (directory / "in").mkdir(exist_ok=True)
    given = settings(directory, **{"execution.checkpointing.interval": "1 h", **changes})
    env = environment(**given)
    source = FileSource.text(str(directory / "in")).monitor_continuously(Duration.of_millis(10))
    lines = env.from_source(source, WatermarkStrategy.no_watermarks(), "lines")
    shape(lines).sink_to(FileSink.json(str(directory / "out"))).uid("out")
    return env.execute_async()


def add(directory: Path, name: str) -> None:
    draft = directory / f"_{name}"
    draft.write_text(f"{name}\n")
    draft.rename(directory / "in" / name)


def lines(directory: Path) -> list[Any]:
    return [row for row, in published(directory / "out")]


@pytest.fixture
def engine(in_process: InProcessEngine, monkeypatch: pytest.MonkeyPatch) -> InProcessEngine:
    monkeypatch.setattr(in_process, "clock", lambda: int(time.time() * 1000), raising=False)
    return in_process


def test_nothing_runs_until_a_folder_has_a_new_file(engine: InProcessEngine, tmp_path: Path) -> None:
    job = reading(tmp_path, lambda stream: stream)
    epochs = Epochs(engine)
    before = epochs.settled()
    for name in ("a", "b"):
        add(tmp_path, name)
        deadline = time.monotonic() + 60
        while len(engine.epochs) == before:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        before = epochs.settled()
    job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert lines(tmp_path) == ["a", "b"]


def test_checkpoints_go_on_and_functions_are_notified_of_them(engine: InProcessEngine, tmp_path: Path) -> None:
    notified = threading.Event()
    asked: list[Any] = []

    def note(spec: Any) -> None:
        asked.extend(spec.notifications)
        if len({n.checkpoint_id for n in asked}) == 3:
            notified.set()

    engine.after_epoch = note
    job = reading(tmp_path, lambda stream: stream, **{"execution.checkpointing.interval": "300 ms"})
    assert notified.wait(60)
    job.cancel().result()
    with_checkpoint = [n.checkpoint_id for n in asked]
    # One epoch has a checkpoint, and one the notification of it; those of the start come on top.
    assert len(engine.epochs) < 4 * len(with_checkpoint) + 6


class LaterOn(KeyedProcessFunction):
    """Says each row once more, half a second after it came."""

    def process_element(self, value: str, ctx: Any) -> None:
        ctx.timer_service().register_processing_time_timer(ctx.timer_service().current_processing_time() + 500)

    def open(self, runtime_context: RuntimeContext) -> None:
        pass

    def on_timer(self, timestamp: int, ctx: Any) -> Iterator[str]:
        yield ctx.get_current_key()


def test_timers_fire_in_time(engine: InProcessEngine, tmp_path: Path) -> None:
    epochs = Epochs(engine)
    job = reading(
        tmp_path, lambda stream: stream.key_by(lambda line: line, Types.STRING()).process(LaterOn(), Types.STRING())
    )
    before = epochs.settled()
    add(tmp_path, "a")
    deadline = time.monotonic() + 60
    while len(engine.epochs) < before + 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    epochs.settled()
    job.stop_with_savepoint(False, str(tmp_path / "savepoints")).result()
    assert lines(tmp_path) == ["a"]
