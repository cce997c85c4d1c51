"""The order of calls along a chain of source, two maps and sink: at the start, at a checkpoint, at the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.graph.stream_graph import Connection
from holdfast.runtime import live_task
from holdfast.runtime.endpoints import SinkOperator, SourceOperator
from holdfast.runtime.epoch import Notification, NotificationKind
from holdfast.runtime.state_handler import StreamOperatorStateHandler
from holdfast.runtime.stateless import MapOperator
from holdfast.state.handles import CheckpointRequest, SnapshotType
from holdfast.state.snapshot_files import MemorySnapshotWriter
from holdfast.types.typeinfo import Types
from tests.graph.programs import Program
from tests.integration.operator_functions import NotingMap, NotingSink, NotingSource, calls
from tests.runtime.local_job import ListSink, LocalJob, plan_of, rows_of

HEAD_TO_TAIL = ["source", "first", "second", "sink"]
TAIL_TO_HEAD = HEAD_TO_TAIL[::-1]


def chain(log: Path, rows: list[str]) -> Program:
    """All in one chain; the sink gives away what the maps say at a checkpoint and at the end."""
    program = Program()
    source = program.graph.add("Source", SourceOperator, NotingSource("source", log, rows), Types.STRING(), [])
    first = program.graph.add("First", MapOperator, NotingMap("first", log), Types.STRING(), [Connection(source)])
    second = program.graph.add("Second", MapOperator, NotingMap("second", log), Types.STRING(), [Connection(first)])
    sink = program.graph.add(
        "Sink", SinkOperator, NotingSink("sink", log, ListSink()), Types.STRING(), [Connection(second)]
    )
    sink.is_sink = True
    return program


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "calls"


def job(tmp_path: Path, log: Path, rows: list[str], **changes: Any) -> LocalJob:
    return LocalJob(plan_of(chain(log, rows), tmp_path / "stores", "lmdb", parallelism=1), **changes)


def noted(log: Path) -> list[str]:
    """The calls since the last time."""
    found = calls(log)
    log.write_text("")
    return found


def each(names: list[str], what: str) -> list[str]:
    return [f"{name} {what}" for name in names]


def through(row: str, after: str) -> list[str]:
    """What a row causes behind one of the chain."""
    return each(HEAD_TO_TAIL[HEAD_TO_TAIL.index(after) + 1 :], f"row {row}")


def test_the_start_is_tail_to_head_and_each_is_open_before_what_sends_to_it_begins(tmp_path: Path, log: Path) -> None:
    running = job(tmp_path, log, ["a", "b", "c"])
    running.run_epoch()
    started = [call for name in TAIL_TO_HEAD for call in (f"{name} initialize_state", f"{name} open")]
    assert noted(log) == [*started, *through("a", "source"), "sink pre_commit"]
    live_task.forget_live_tasks("job")
    running.run_epoch()
    assert noted(log) == [*through("b", "source"), "sink pre_commit"], "another process opens nothing again"


def test_a_checkpoint(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Last rows head to tail, then the barrier, then tail to head each function before its backends."""
    written = StreamOperatorStateHandler.prepare

    def noting(self: StreamOperatorStateHandler, *arguments: Any) -> Any:
        with log.open("a") as file:
            file.write(f"{self._spec.name.lower()} backends\n")
        return written(self, *arguments)

    monkeypatch.setattr(StreamOperatorStateHandler, "prepare", noting)
    running = job(tmp_path, log, ["a", "b", "c"])
    running.run_epoch()
    noted(log)
    restored = running.checkpoint(7)
    prepared = []
    for name in HEAD_TO_TAIL:
        prepared.append(f"{name} prepare_snapshot_pre_barrier")
        prepared += through(f"{name} before the barrier", name)
    snapshots = [call for name in TAIL_TO_HEAD for call in (f"{name} snapshot_state", f"{name} backends")]
    assert noted(log) == [*through("b", "source"), *prepared, "sink pre_commit", *snapshots]
    running.run_epoch(
        notifications=(Notification(NotificationKind.COMPLETE, 7), Notification(NotificationKind.ABORTED, 8))
    )
    told = each(TAIL_TO_HEAD, "notify_checkpoint_complete") + each(TAIL_TO_HEAD, "notify_checkpoint_aborted")
    assert noted(log)[: len(told)] == told
    assert restored.operators, "what was written is in the checkpoint"


def test_rows_given_before_the_barrier_are_in_its_epoch(tmp_path: Path, log: Path) -> None:
    running = job(tmp_path, log, ["a", "b"])
    running.run_epoch()
    assert rows_of(running.run_epoch(read_sources=False)) == []
    request = CheckpointRequest(1, SnapshotType.CHECKPOINT, 0, 1, 3)
    acknowledged = running.run_epoch(checkpoint=request, writer=MemorySnapshotWriter(), read_sources=False)
    assert rows_of(acknowledged) == [f"{name} before the barrier" for name in HEAD_TO_TAIL[:3]]


def test_the_end_of_the_input(tmp_path: Path, log: Path) -> None:
    running = job(tmp_path, log, ["a"])
    acknowledged = running.run_epoch()
    finished = []
    for name in HEAD_TO_TAIL:
        finished.append(f"{name} finish")
        finished += through(f"{name} at the end", name)
    assert noted(log)[8:] == [*through("a", "source"), *finished, "sink pre_commit"]
    assert rows_of(acknowledged) == ["a", *(f"{name} at the end" for name in HEAD_TO_TAIL[:3])]
    running.run_epoch(read_sources=False, close=True)
    assert noted(log) == each(TAIL_TO_HEAD, "close")
