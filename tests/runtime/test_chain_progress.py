"""Event time and the end of input belong to operators, whatever they are chained to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import MapFunction, StreamExecutionEnvironment
from tests.graph.restored_jobs import StoredJob, environment
from tests.integration.programs import Scripted
from tests.runtime.local_job import ListSink


class Itself(TimestampAssigner):
    def extract_timestamp(self, value: int, record_timestamp: int) -> int:
        return value


class NotesItsEnd(MapFunction):
    def __init__(self, notes: Path) -> None:
        self.notes = notes

    def map(self, value: int) -> int:
        return value

    def finish(self) -> None:
        with self.notes.open("a") as file:
            file.write("finished\n")


def program(notes: Path, ends: bool, chained: bool) -> Any:
    def build(env: StreamExecutionEnvironment) -> None:
        strategy = WatermarkStrategy.for_monotonous_timestamps().with_timestamp_assigner(Itself())
        numbers = env.from_source(Scripted([[100, 200]], ends), strategy, "numbers", Types.LONG()).uid("watermarks")
        noted = numbers.map(NotesItsEnd(notes), Types.LONG()).uid("noted")
        if not chained:
            noted.disable_chaining()
        noted.sink_to(ListSink()).uid("sink")

    return environment(build, parallelism=1)


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True), (True, True)])
def test_what_has_finished_does_not_finish_again(tmp_path: Path, before: bool, after: bool) -> None:
    notes = tmp_path / "notes"
    job = StoredJob(program(notes, True, before), tmp_path)
    assert job.rows() == [100, 200]
    path, metadata = job.checkpoint(1)
    job.close()
    assert all(snapshot.finished for record in metadata.operators for snapshot in record.subtasks)
    again = StoredJob(program(notes, True, after), tmp_path, path)
    assert again.rows() == []
    again.close()
    assert notes.read_text() == "finished\n"


@pytest.mark.parametrize(("before", "after"), [(True, False), (False, True)])
def test_event_time_does_not_go_back(tmp_path: Path, before: bool, after: bool) -> None:
    job = StoredJob(program(tmp_path / "notes", False, before), tmp_path)
    job.run()
    path, metadata = job.checkpoint(1)
    job.close()
    noted = next(record for record in metadata.operators if record.uid == "noted")
    assert [snapshot.watermark for snapshot in noted.subtasks] == [199]
    assert [snapshot.operator_state for snapshot in noted.subtasks] == [None], "it has no state of its own"
    again = StoredJob(program(tmp_path / "notes", False, after), tmp_path, path)
    progress = [p for a in again.run() for p in a.progress if p.operator_id == noted.operator_id]
    again.close()
    assert [p.watermark for p in progress] == [199]
