"""Spark's streams as input of epochs: a Structured Streaming query whose micro-batches wait to be read.

The query runs in a thread of Spark. It plans each micro-batch, hands it over and waits; the attempt takes it when it
runs an epoch, and lets the query go on. So the attempt alone decides what an epoch is, and epochs without rows may run
at any time.

Where all sources keep what they have given, the query goes on as soon as a micro-batch is taken, and has the next one
ready when the epoch is over. Other sources are told by Spark, when it goes on, that the micro-batch was read: it must
not go on before that is so. Nor where a micro-batch is shuffled, because Spark deletes its shuffles then.

The query's checkpoint directory is a temporary one on the driver's host: it is made from what our checkpoint holds, and
is gone with the attempt. Spark never resumes one.
"""

from __future__ import annotations

import logging
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from holdfast.errors import EpochError
from holdfast.runtime.data_frame_input import DataFrameInput
from holdfast.spark.accelerations import Acceleration, Accelerations
from holdfast.spark.internals.file_manager import plain_file_manager
from holdfast.spark.internals.jvm import JVM_ERRORS
from holdfast.spark.internals.stream_log import StreamPosition, StreamSource, read_positions, write_fork
from holdfast.spark.internals.stream_sources import in_one
from holdfast.spark.run_folder import run_folder
from holdfast.spark.session_settings import changed_settings
from holdfast.spark.slices import DataFrameSlice, SlicePlanner

logger = logging.getLogger(__name__)

_QUERY = "query"
_POLL_SECONDS = 0.01
_STOP_SECONDS = 30.0

_RETAINED = {
    # A checkpoint reads the offsets of the last two micro-batches.
    "spark.sql.streaming.minBatchesToRetain": "10",
}
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


def query_settings(session: SparkSession, accelerations: Accelerations) -> dict[str, str]:
    """Settings of the session while the query starts, which copies them."""
    plain = plain_file_manager(session) if accelerations.has(Acceleration.FILE_MANAGER) else None
    return _RETAINED if plain is None else {**_RETAINED, _FILE_MANAGER: plain}


class StreamDriver:
    """One query over all streams of a job. ``arrived`` is called, in some thread, when there is something to look at.

    ``take``, ``accept`` and ``release`` are called by one thread, in this order for each micro-batch; the last one only
    for those that are ``held``.
    """

    def __init__(
        self,
        session: SparkSession,
        planner: SlicePlanner,
        inputs: Sequence[DataFrameInput],
        sources: Sequence[Sequence[StreamSource]],
        settings: Mapping[str, str],
        trigger: Mapping[str, Any],
        reads_ahead: bool,
        arrived: Callable[[], None],
    ) -> None:
        self._session = session
        self._planner = planner
        self._inputs = tuple(inputs)
        self._sources = sources
        self._settings = settings
        self._trigger = trigger
        self._reads_ahead = reads_ahead
        self._arrived = arrived
        self._changed = threading.Condition()
        self._waiting: tuple[DataFrameSlice, int] | None = None
        #: The micro-batches that were taken, accepted and released last.
        self._taken = self._accepted = self._released = -1
        self._ends = "availableNow" in trigger
        self._closing = self._over = False
        self._failure: BaseException | None = None
        self._directory = Path()
        self._query: StreamingQuery | None = None

    def start(self, positions: Mapping[str, StreamPosition]) -> None:
        """Go on from ``positions``, by operator id; streams without one begin anew."""
        self._directory = Path(tempfile.mkdtemp(prefix="holdfast-stream-", dir=run_folder()))
        fork = self._directory / _QUERY
        known = [positions.get(each.operator_id) for each in self._inputs]
        self._taken = self._accepted = self._released = write_fork(fork, known, self._sources)
        rows = in_one([each.data_frame for each in self._inputs])
        writer = rows.writeStream.foreachBatch(self._hand_over).option("checkpointLocation", fork.as_uri())
        writer = writer.trigger(**self._trigger)
        with changed_settings(self._session, self._settings):
            self._query = writer.start()
        threading.Thread(target=self._watch, args=[self._query], name="holdfast-stream", daemon=True).start()

    # -- the attempt's side

    def waiting(self) -> bool:
        """Whether ``take`` would give a micro-batch, or raise."""
        with self._changed:
            return self._failure is not None or self._unread()

    @property
    def ended(self) -> bool:
        """Whether every micro-batch was accepted and none will come."""
        with self._changed:
            read = self._waiting is None and self._accepted == self._taken
            return self._over and self._failure is None and read

    def take(self) -> DataFrameSlice | None:
        """The micro-batch that waits to be read."""
        with self._changed:
            if self._failure is not None:
                raise EpochError(f"Spark could not read its streams: {self._failure}") from self._failure
            if not self._unread():
                return None
            assert self._waiting is not None
            micro_batch, self._taken = self._waiting
            if self._reads_ahead and not micro_batch.rows.exchanged:
                self._let_go_on(self._taken)
            return micro_batch

    def _unread(self) -> bool:
        return self._waiting is not None and self._waiting[1] > self._taken

    def accept(self) -> None:
        """The epoch that read the micro-batch counts."""
        self._accepted = self._taken

    @property
    def held(self) -> bool:
        """Whether a micro-batch is accepted that Spark was not told to go on from."""
        return self._released < self._accepted

    def release(self) -> None:
        """Let Spark go on: its sources may forget what came before this micro-batch's end."""
        with self._changed:
            self._let_go_on(self._accepted)

    def _let_go_on(self, batch: int) -> None:
        self._waiting = None
        self._released = batch
        self._changed.notify_all()

    def positions(self) -> dict[str, StreamPosition]:
        """Behind the last accepted micro-batch, by operator id."""
        found = read_positions(self._directory / _QUERY, self._accepted, self._sources)
        return {each.operator_id: position for each, position in zip(self._inputs, found, strict=True)}

    def close(self) -> None:
        """Stop the query. A micro-batch that was not accepted stays unread, and no source is told anything more."""
        if self._query is not None:
            with suppress(*JVM_ERRORS, PySparkException):  # a JVM that is gone runs no query
                self._stop(self._query)
        if self._directory.name:
            shutil.rmtree(self._directory, ignore_errors=True)

    def _stop(self, query: StreamingQuery) -> None:
        stopping = threading.Thread(target=_stop_quietly, args=[query], daemon=True)
        self._closing = True
        stopping.start()
        try:
            # Once it is not active any more it begins no other micro-batch: only then the waiting one may return.
            while query.isActive and stopping.is_alive():
                time.sleep(_POLL_SECONDS)
        finally:
            self._end()
        stopping.join(_STOP_SECONDS)

    # -- Spark's side

    def _hand_over(self, rows: DataFrame, batch: int) -> None:
        try:
            planned = self._planner.micro_batch(self._inputs, rows)
        except Exception as error:
            # Spark would report an error of a function that the program does not have.
            self._failure = error
            raise
        with self._changed:
            self._waiting = planned, batch
        self._arrived()
        with self._changed:
            self._changed.wait_for(lambda: self._released >= batch or self._over)

    def _watch(self, query: StreamingQuery) -> None:
        try:
            query.awaitTermination()
            if not self._closing and not self._ends:
                self._failure = EpochError("something else than the job has stopped the query")
        except Exception as error:
            self._failure = self._failure or error
        self._end()
        self._arrived()

    def _end(self) -> None:
        with self._changed:
            self._over = True
            self._changed.notify_all()


def _stop_quietly(query: StreamingQuery) -> None:
    with suppress(*JVM_ERRORS, PySparkException):
        query.stop()
