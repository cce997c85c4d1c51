"""Event time and the end of input belong to operators, whatever they are chained to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.common import Types, WatermarkStrategy
from holdfast.common.watermark_strategy import TimestampAssigner
from holdfast.datastream import FlatMapFunction, MapFunction, StreamExecutionEnvironment
from holdfast.datastream.state import ListStateDescriptor
from holdfast.errors import RestoreError
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


class Gathering(FlatMapFunction):
    """Gives everything at the end."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def initialize_state(self, context: Any) -> None:
        self.stored = context.get_operator_state_store().get_list_state(ListStateDescriptor("rows", Types.LONG()))
        self.rows = self.stored.get()

    def snapshot_state(self, context: Any) -> None:
        self.stored.update(self.rows)

    def flat_map(self, value: int) -> list[int]:
        self.rows.append(value)
        return []

    def finish(self) -> list[int]:
        rows, self.rows = self.rows, []
        return rows


def gathering(*sources: str, ends: bool = True, keyed: bool = False) -> Any:
    """Some sources, all of which are gathered. Only the first one ends, unless all do."""

    def build(env: StreamExecutionEnvironment) -> None:
        streams = [
            env.from_source(
                Scripted([[10 * number, 10 * number + 1]], ends or number == 0),
                WatermarkStrategy.no_watermarks(),
                name,
                Types.LONG(),
            ).uid(name)
            for number, name in enumerate(sources)
        ]
        united = streams[0].union(*streams[1:]) if len(streams) > 1 else streams[0]
        rows = united.key_by(lambda value: value, Types.LONG()) if keyed else united
        rows.flat_map(Gathering(), Types.LONG()).uid("gathering").sink_to(ListSink()).uid("sink")

    return environment(build, 1, **{"execution.state-recovery.ignore-unclaimed-state": len(sources) == 1})


def test_an_operator_that_had_finished_gets_no_new_input(tmp_path: Path) -> None:
    job = StoredJob(gathering("first", keyed=True), tmp_path)
    assert job.rows() == [0, 1]
    path, _ = job.checkpoint(1)
    job.close()
    with pytest.raises(RestoreError, match=r"input of operator 'Flat Map' .* had ended, .* gets rows of 'Union'"):
        StoredJob(gathering("first", "second", keyed=True), tmp_path, path)


def test_an_operator_whose_other_input_is_taken_away_still_finishes(tmp_path: Path) -> None:
    job = StoredJob(gathering("first", "second", ends=False), tmp_path)
    job.run()
    path, metadata = job.checkpoint(1)
    job.close()
    assert {r.uid: r.finished for r in metadata.operators if r.uid} == {
        "first": True,
        "second": False,
        "gathering": False,
        "sink": False,
    }
    again = StoredJob(gathering("first"), tmp_path, path)
    assert len(again.job.plan.chains) == 1, "what has finished and what has not are chained now"
    assert again.rows() == [0, 1, 10, 11]
    again.close()


def test_a_new_operator_before_one_that_had_finished(tmp_path: Path) -> None:
    notes = tmp_path / "notes"

    def build(env: StreamExecutionEnvironment, inserted: bool) -> None:
        numbers = env.from_source(Scripted([[1]]), WatermarkStrategy.no_watermarks(), "numbers", Types.LONG())
        rows = numbers.uid("numbers").rebalance()
        rows = rows.map(NotesItsEnd(tmp_path / "new"), Types.LONG()).uid("new") if inserted else rows
        rows.map(NotesItsEnd(notes), Types.LONG()).uid("noted").sink_to(ListSink()).uid("sink")

    job = StoredJob(environment(lambda env: build(env, False), 1), tmp_path)
    assert job.rows() == [1]
    path, _ = job.checkpoint(1)
    job.close()
    again = StoredJob(environment(lambda env: build(env, True), 1), tmp_path, path)
    assert again.rows() == []
    again.close()
    assert (notes.read_text(), (tmp_path / "new").read_text()) == ("finished\n", "finished\n")
