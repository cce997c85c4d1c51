"""One epoch as one Spark job: levels over the anchor, run by a single action."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress

import msgspec
from py4j.protocol import Py4JError
from pyspark.core.broadcast import Broadcast
from pyspark.sql import DataFrame

from holdfast.errors import EpochError
from holdfast.runtime.envelope import EXCHANGE_DDL, GROUP_SIZE
from holdfast.runtime.epoch import Acknowledgement, EpochSpec, RestoredJob
from holdfast.runtime.plan import JobPlan
from holdfast.runtime.task import read_acknowledgement
from holdfast.spark.anchor import Anchor
from holdfast.spark.data_frame_task import data_frame_function
from holdfast.spark.epoch_property import announce_epoch
from holdfast.spark.job import DataFrameSlice
from holdfast.spark.level_task import ArrowFunction, AttemptIdentity, level_function

logger = logging.getLogger(__name__)


class EpochRunner:
    """Runs the epochs of one attempt. Functions travel once, in a broadcast; each epoch ships only its small spec,
    beside the plan.
    """

    def __init__(
        self, anchor: Anchor, plan: JobPlan, packed_plan: bytes, identity: AttemptIdentity, restored: RestoredJob | None
    ) -> None:
        self._context = anchor.session.sparkContext
        broadcast = self._context.broadcast
        #: By which the Spark job of an epoch that may be interrupted is found.
        self._tag = f"holdfast-{identity[1]}-{identity[2]}"
        self._anchor = anchor
        self._plan = plan
        self._identity = identity
        self._packed_plan: Broadcast[bytes] = broadcast(packed_plan)
        self._restored = None if restored is None else broadcast(msgspec.msgpack.encode(restored))
        self._levels: DataFrame | None = None

    def run(
        self, spec: EpochSpec, slices: tuple[DataFrameSlice, ...]
    ) -> tuple[list[Acknowledgement], Mapping[int, int]]:
        """All acknowledgements of the epoch, and by group the partitions of each DataFrame that it read."""
        announce_epoch(self._anchor.session, spec)
        partitions = {
            each.group: int(each.data_frame._jdf.queryExecution().toRdd().getNumPartitions()) for each in slices
        }
        rows = self._build(slices, partitions) if slices else self._own_sources()
        # Only messages for the coordinator leave the last level. The selection is made anew for each epoch: Spark
        # plans and runs all stages of it, where the same DataFrame collected twice would give the old rows again.
        with self._tagged() if not spec.read_sources else nullcontext():
            payloads = rows.select("payload").toArrow().column("payload")
        return [read_acknowledgement(payload.as_py()) for payload in payloads], partitions

    @contextmanager
    def _tagged(self) -> Iterator[None]:
        """Spark jobs of this thread can be interrupted."""
        self._context.addJobTag(self._tag)
        self._context.setInterruptOnCancel(True)
        try:
            yield
        finally:
            with suppress(Py4JError, OSError):
                self._context.removeJobTag(self._tag)
                self._context.setInterruptOnCancel(False)

    def interrupt(self) -> None:
        """Let the epoch fail that runs, if it reads no sources. Any thread may call; a worker whose task does not end
        is killed by Spark.
        """
        with suppress(Py4JError, OSError):
            self._context.cancelJobsWithTag(self._tag)

    def _own_sources(self) -> DataFrame:
        """The levels of an epoch that reads no DataFrame: the same in every epoch."""
        if self._levels is None:
            self._levels = self._build((), {})
        return self._levels

    def _build(self, slices: tuple[DataFrameSlice, ...], partitions: Mapping[int, int]) -> DataFrame:
        slots, values = self._plan.slots, self._anchor.values
        rows = self._anchor.table.mapInArrow(self._function(0, []), EXCHANGE_DDL)
        senders, first = list(range(slots)), slots
        for each in slices:
            count = partitions[each.group]
            function = data_frame_function(self._packed_plan, self._identity, each, first, values)
            rows = rows.union(each.data_frame.mapInArrow(function, EXCHANGE_DDL))
            senders += [each.group * GROUP_SIZE + index for index in range(count)]
            first += count
        for level in range(1, self._plan.levels):
            rows = self._exchange(rows).mapInArrow(self._function(level, senders), EXCHANGE_DDL)
            senders = list(range(slots))
        self._check_plan(rows)
        return rows

    def _exchange(self, rows: DataFrame) -> DataFrame:
        """Move envelopes to their slots, each slot to the executor that caches its anchor row, in one order."""
        slots = self._plan.slots
        moved = rows.repartition(slots, "slot").join(self._anchor.table.hint("shuffle_hash"), "slot")
        return moved.sortWithinPartitions("edge", "channel", "number")

    def _function(self, level: int, senders: list[int]) -> ArrowFunction:
        return level_function(self._packed_plan, self._restored, self._identity, level, senders, self._anchor.values)

    def _check_plan(self, rows: DataFrame) -> None:
        """The plan must have one exchange per level, each with as many partitions as slots, and none on the
        anchor.
        """
        text: str = rows._jdf.queryExecution().executedPlan().toString()
        slots, levels = self._plan.slots, self._plan.levels
        # With one slot there is nothing to hash by, and Spark says so in other words.
        wanted = "Exchange hashpartitioning(slot#" if slots > 1 else "Exchange SinglePartition"
        exchanges = [line for line in text.splitlines() if wanted in line]
        # The cached anchor shows the exchange that it was made with, once wherever it is used.
        expected = levels - 1 + text.count("InMemoryRelation")
        misplaced = [line for line in exchanges if slots > 1 and f", {slots})" not in line]
        unwanted = [name for name in ("BroadcastHashJoin", "SortMergeJoin", "AdaptiveSparkPlan") if name in text]
        if len(exchanges) != expected or misplaced or unwanted:
            raise EpochError(
                f"Spark planned the epoch in a way that does not keep slots on their executors: {len(exchanges)} "
                f"exchanges where {expected} are expected "
                f"({levels} levels, {slots} slots), unwanted: {unwanted or misplaced or 'none'}. Check "
                f"spark.sql.adaptive.enabled and join hints.\n{text}"
            )
        logger.debug("Epoch plan:\n%s", text)

    def close(self) -> None:
        with suppress(Py4JError, OSError):  # a JVM that is gone holds nothing
            announce_epoch(self._anchor.session, None)
            self._packed_plan.unpersist(blocking=False)
            if self._restored is not None:
                self._restored.unpersist(blocking=False)
