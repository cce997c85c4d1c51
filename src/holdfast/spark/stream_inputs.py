"""The streams of a job over one attempt: where they go on from, what a checkpoint holds of them, and when Spark may go
on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pyspark.sql import SparkSession

from holdfast.errors import ProgramError, RestoreError
from holdfast.job.job import Job
from holdfast.job.restore_point import RestorePoint
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.spark.accelerations import Accelerations
from holdfast.spark.internals.stream_log import StreamPosition, StreamSource, check_position, decode_position
from holdfast.spark.internals.stream_sources import sources_of
from holdfast.spark.slices import DataFrameSlice, SlicePlanner
from holdfast.spark.stream_driver import StreamDriver, query_settings
from holdfast.state.handles import OperatorRecord, SubtaskSnapshot
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.types.settings import EpochSettings


class StreamInputs:
    """Nothing but calls that do nothing, in a job without streams."""

    def __init__(
        self,
        job: Job,
        session: SparkSession,
        accelerations: Accelerations,
        point: RestorePoint | None,
        planner: SlicePlanner,
        arrived: Callable[[], None],
    ) -> None:
        self._all = tuple(each for each in job.data_frames if each.streaming)
        records = {record.operator_id: record for record in (point.operators if point is not None else ())}
        #: Streams that had come to their end are not read again.
        self._ended = {each.operator_id for each in self._all if _finished(records.get(each.operator_id))}
        self._positions: dict[str, StreamPosition] = {}
        if point is not None:
            self._positions = restored_positions(self._all, records.values(), point.reader)
        self._driver: StreamDriver | None = None
        self._accepted_epoch = 0
        self._acknowledges = False
        running = tuple(each for each in self._all if each.operator_id not in self._ended)
        if running:
            sources = self._check(running)
            doubtful = _doubtful(running, sources)
            self._acknowledges = doubtful is not None and _behind_checkpoints(job, *doubtful)
            self._driver = StreamDriver(
                session,
                planner,
                running,
                sources,
                query_settings(session, accelerations),
                _trigger(job.epoch),
                reads_ahead=doubtful is None,
                arrived=arrived,
            )

    def _check(self, running: Sequence[DataFrameInput]) -> list[list[StreamSource]]:
        sources = sources_of([each.name for each in running], [each.data_frame for each in running])
        for each, of_stream in zip(running, sources, strict=True):
            if each.operator_id in self._positions:
                check_position(self._positions[each.operator_id], of_stream, each.name)
        return sources

    def start(self) -> None:
        if self._driver is not None:
            running = {each.operator_id for each in self._all} - self._ended
            self._driver.start({name: p for name, p in self._positions.items() if name in running})

    @property
    def any(self) -> bool:
        return bool(self._all)

    def waiting(self) -> bool:
        """Whether an epoch would read something of a stream, or learn of its end."""
        return self._driver is not None and (self._driver.waiting() or self._driver.ended)

    def take(self) -> DataFrameSlice | None:
        """The micro-batch for this epoch, if one is there."""
        if self._driver is None:
            return None
        if self._driver.ended:
            self._positions |= self._driver.positions()
            self._ended = {each.operator_id for each in self._all}
            self._driver.close()
            self._driver = None
            return None
        return self._driver.take()

    @property
    def unended(self) -> frozenset[str]:
        return frozenset(each.operator_id for each in self._all) - self._ended

    @property
    def ended(self) -> frozenset[str]:
        """The operator ids of streams that are known to give nothing more."""
        return frozenset(self._ended)

    def accept(self, epoch: int) -> None:
        """The micro-batch that was taken is part of this epoch, which counts."""
        assert self._driver is not None
        self._driver.accept()
        self._accepted_epoch = epoch

    @property
    def want_checkpoint(self) -> bool:
        """Whether Spark must not go on before a checkpoint holds what it has given, or will give now."""
        driver = self._driver
        return driver is not None and self._acknowledges and (driver.held or driver.waiting())

    def release(self, durable_epoch: int) -> None:
        """An epoch is over: let Spark go on, unless a source would forget what is in no checkpoint yet."""
        driver = self._driver
        if driver is not None and driver.held and not (self._acknowledges and durable_epoch < self._accepted_epoch):
            driver.release()

    def snapshots(self, writer: SnapshotWriter, attempt: int) -> list[SubtaskSnapshot]:
        """What a checkpoint holds, behind the last epoch that was accepted."""
        positions = dict(self._positions)
        if self._driver is not None:
            positions |= self._driver.positions()
        found = []
        for each in self._all:
            name = f"{each.operator_id}-stream-{attempt}"
            state = writer.write(name, positions[each.operator_id].encode())
            finished = each.operator_id in self._ended
            found.append(SubtaskSnapshot(each.operator_id, 0, operator_state=state, finished=finished))
        return found

    def close(self) -> None:
        if self._driver is not None:
            self._driver.close()


def restored_positions(
    inputs: Iterable[DataFrameInput], records: Iterable[OperatorRecord], reader: SnapshotReader
) -> dict[str, StreamPosition]:
    """The positions to go on from, by operator id; RestoreError where the state is that of something else."""
    handles = {record.operator_id: record.subtasks[0].operator_state for record in records if record.subtasks}
    return {
        each.operator_id: decode_position(reader.read(handle), each.name)
        for each in inputs
        if (handle := handles.get(each.operator_id)) is not None
    }


def refuse_position(source: DataFrameInput, record: OperatorRecord, reader: SnapshotReader) -> str | None:
    """Why a stream cannot go on from what is stored under its id."""
    try:
        for position in restored_positions([source], [record], reader).values():
            check_position(position, sources_of([source.name], [source.data_frame])[0], source.name)
    except RestoreError as error:
        return str(error)
    return None


def _trigger(settings: EpochSettings) -> dict[str, Any]:
    if settings.stream_available_now:
        return {"availableNow": True}
    return {"processingTime": f"{settings.stream_interval_ms} milliseconds"}


def _finished(record: OperatorRecord | None) -> bool:
    return record is not None and record.finished


def _doubtful(inputs: Sequence[DataFrameInput], sources: Sequence[Sequence[StreamSource]]) -> tuple[str, str] | None:
    """A stream, and a source of it that may forget, or let others forget, what Spark tells it to have read."""
    for each, of_stream in zip(inputs, sources, strict=True):
        for source in of_stream:
            if not source.keeps_everything:
                return each.name, source.kind
    return None


def _behind_checkpoints(job: Job, name: str, kind: str) -> bool:
    """Whether Spark tells a doubtful source only of what a checkpoint holds."""
    if job.checkpoint.interval_ms is not None:
        return True
    if job.restart.kind != "none":
        raise ProgramError(
            f"The source '{kind}' of the stream '{name}' may delete or acknowledge what Spark has read, and without "
            "checkpoints a restart would miss those rows. Enable checkpointing, or set restart-strategy.type: none."
        )
    return False
