"""When Spark may go on, and what a checkpoint holds of streams: with a query that the test plays."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.checkpoint.job_facts import JobFacts
from holdfast.errors import ProgramError, RestoreError
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.spark import stream_inputs
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.internals.stream_log import SourcePosition, StreamPosition, StreamSource
from holdfast.spark.stream_inputs import StreamInputs
from holdfast.state.handles import FileHandle
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.types.settings import CheckpointSettings, EpochSettings, FixedDelaySettings, NoRestartSettings
from tests.checkpoint.samples import handle, record, snapshot


class Frame:
    isStreaming = True


class Query:
    """Stands in the place of ``StreamDriver``."""

    def __init__(
        self,
        session: Any,
        planner: Any,
        inputs: Any,
        sources: Any,
        settings: Any,
        trigger: Any,
        reads_ahead: bool,
        arrived: Any,
    ) -> None:
        self.inputs, self.reads_ahead = inputs, reads_ahead
        self.batch = self.accepted = self.released = -1
        self.ended = self.closed = False
        self.started_from: dict[str, StreamPosition] | None = None

    def start(self, positions: dict[str, StreamPosition]) -> None:
        self.started_from = positions

    def waiting(self) -> bool:
        return self.batch > self.accepted

    def take(self) -> str | None:
        if not self.waiting():
            return None
        if self.reads_ahead:
            self.released = self.batch
        return "a micro-batch"

    def accept(self) -> None:
        self.accepted = self.batch

    @property
    def held(self) -> bool:
        return self.released < self.accepted

    def release(self) -> None:
        self.released = self.accepted

    def positions(self) -> dict[str, StreamPosition]:
        return {each.operator_id: position(self.accepted) for each in self.inputs}

    def close(self) -> None:
        self.closed = True


class Memory(SnapshotWriter, SnapshotReader):
    def write(self, name: str, data: bytes, shared: bool = False) -> FileHandle:
        return handle(inline=data)

    def read(self, handle: FileHandle) -> bytes:
        assert handle.inline is not None
        return handle.inline

    def read_range(self, handle: FileHandle, offset: int, length: int) -> bytes:
        raise AssertionError


def position(batch: int) -> StreamPosition:
    return StreamPosition(batch, "{}", "{}", (SourcePosition("some", "-", f"{batch}", {}),))


class Job:
    def __init__(self, checkpoints: bool = True, restarts: bool = True) -> None:
        self.data_frames = tuple(DataFrameInput(i, name, name, Frame(), ()) for i, name in enumerate("ab", start=1))
        self.checkpoint = CheckpointSettings(interval_ms=3_600_000 if checkpoints else None)
        self.restart = FixedDelaySettings() if restarts else NoRestartSettings()
        self.epoch = EpochSettings(stream_available_now=True)
        self.facts = JobFacts("job", "job", "hash", (), "heap")


@pytest.fixture
def source(monkeypatch: pytest.MonkeyPatch) -> list[StreamSource]:
    """What both streams read; a test may change it."""
    kinds = [StreamSource("some")]
    monkeypatch.setattr(stream_inputs, "sources_of", lambda names, frames: [list(kinds) for _ in names])
    monkeypatch.setattr(stream_inputs, "StreamDriver", Query)
    return kinds


NONE = Accelerations(dict.fromkeys(Acceleration, "not asked for"))


def begin(job: Any, point: Any = None) -> tuple[StreamInputs, Query]:
    inputs = StreamInputs(job, None, NONE, point, None, lambda: None)  # type: ignore[arg-type]  # not asked for
    inputs.start()
    query: Any = inputs._driver
    return inputs, query


def restored(inputs: StreamInputs) -> RestorePoint:
    records = tuple(record(one.operator_id, [one]) for one in inputs.snapshots(Memory(), 1))
    return RestorePoint(None, Memory(), records, foreign=False)  # type: ignore[arg-type]  # all that is asked


def read_one(inputs: StreamInputs, query: Query, epoch: int) -> None:
    query.batch += 1
    assert inputs.take() is not None
    inputs.accept(epoch)


def test_a_source_that_may_acknowledge_goes_on_behind_a_checkpoint(source: list[StreamSource]) -> None:
    inputs, query = begin(Job())
    assert not inputs.want_checkpoint
    query.batch = 0
    assert inputs.want_checkpoint, "the epoch that reads it should carry one"
    assert inputs.take() is not None
    inputs.accept(7)
    inputs.release(durable_epoch=6)
    assert query.released == -1
    assert inputs.want_checkpoint
    assert inputs.take() is None, "it was read twice"
    inputs.release(durable_epoch=7)
    assert query.released == 0
    assert not inputs.want_checkpoint


def test_a_source_that_keeps_everything_goes_on_at_once(source: list[StreamSource]) -> None:
    source[:] = [StreamSource("rate", keeps_everything=True)]
    inputs, query = begin(Job())
    query.batch = 0
    assert inputs.take() is not None
    assert query.released == 0, "while the epoch that reads it runs"
    inputs.accept(7)
    inputs.release(durable_epoch=-1)
    assert query.released == 0
    assert not inputs.want_checkpoint


def test_a_source_that_may_acknowledge_waits_beside_one_that_keeps_everything(source: list[StreamSource]) -> None:
    source[:] = [StreamSource("rate", keeps_everything=True), StreamSource("some")]
    inputs, query = begin(Job())
    read_one(inputs, query, 7)
    assert query.released == -1
    inputs.release(durable_epoch=7)
    assert query.released == 0


def test_without_checkpoints_a_source_that_may_acknowledge_must_not_be_read_again(source: list[StreamSource]) -> None:
    with pytest.raises(ProgramError, match=r"'some' of the stream 'a' may delete .* Enable checkpointing"):
        begin(Job(checkpoints=False))
    inputs, query = begin(Job(checkpoints=False, restarts=False))
    read_one(inputs, query, 1)
    inputs.release(durable_epoch=-1)
    assert query.released == 0


def test_an_attempt_goes_on_where_the_checkpoint_is(source: list[StreamSource]) -> None:
    inputs, query = begin(Job())
    read_one(inputs, query, 1)
    _, again = begin(Job(), restored(inputs))
    assert again.started_from == {"a": position(0), "b": position(0)}


def test_streams_that_ended_are_not_read_again_and_keep_their_position(source: list[StreamSource]) -> None:
    inputs, query = begin(Job())
    read_one(inputs, query, 1)
    query.ended = True
    assert inputs.waiting()
    assert inputs.unended == {"a", "b"}
    assert inputs.take() is None
    assert query.closed
    assert (inputs.ended, inputs.waiting()) == ({"a", "b"}, False)
    again, no_query = begin(Job(), restored(inputs))
    assert no_query is None
    assert again.ended == {"a", "b"}
    assert restored(again).operators == restored(inputs).operators


def test_the_state_of_something_else_is_refused(source: list[StreamSource]) -> None:
    other = snapshot(operator_id="a", operator_state=handle(inline=b"read"))
    # Ignored: it is asked for no more than this has.
    point: Any = RestorePoint(None, Memory(), (record("a", [other]),), foreign=False)  # type: ignore[arg-type]
    with pytest.raises(RestoreError, match="state of another operator under the id of the stream 'a'"):
        begin(Job(), point)
