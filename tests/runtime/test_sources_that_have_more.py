"""What a task knows of rows that its sources have not given yet."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from holdfast.connectors.sequence import NumberSequenceSource
from holdfast.datastream import SourceFunction
from holdfast.graph.stream_graph import Connection
from holdfast.runtime.endpoints import SinkOperator, SourceOperator
from holdfast.runtime.partitioners import Forward
from holdfast.runtime.source import ReadLimit
from holdfast.types.typeinfo import Types
from tests.graph.programs import Program
from tests.runtime.local_job import ListSink, LocalJob, plan_of


class Trickle(SourceFunction):
    """Gives what it is told to, epoch by epoch, and never ends."""

    def __init__(self, given: list[int]) -> None:
        self._given = given

    def read(self, limit: ReadLimit) -> Iterator[list[int]]:
        if self._given:
            yield list(range(min(limit.rows, self._given.pop(0))))


def job_of(source: object, directory: Path) -> LocalJob:
    program = Program()
    read = program.graph.add("Source", SourceOperator, source, Types.LONG(), [])
    written = program.graph.add("Sink", SinkOperator, ListSink(), Types.LONG(), [Connection(read, Forward())])
    written.is_sink = True
    return LocalJob(plan_of(program, directory, parallelism=1))


def more(job: LocalJob, rows: int, millis: int = 60_000) -> bool:
    return any(a.more for a in job.run_epoch(rows_per_subtask=rows, max_millis=millis))


def test_one_without_an_end_has_more_when_it_was_stopped(tmp_path: Path) -> None:
    job = job_of(Trickle([3, 10, 2, 0]), tmp_path)
    assert [more(job, 10) for _ in range(4)] == [False, True, False, False]


def test_the_end_of_the_time_stops_it_too(tmp_path: Path) -> None:
    assert more(job_of(Trickle([3]), tmp_path), 10, millis=0)


def test_one_with_an_end_has_more_until_then(tmp_path: Path) -> None:
    job = job_of(NumberSequenceSource(0, 24), tmp_path)
    assert [more(job, 10) for _ in range(3)] == [True, True, False]
