"""Event time: giving rows their timestamps, and the watermark over several channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.runtime.alignment import HeldBack, PausableClock
from holdfast.runtime.batch import Batch
from holdfast.runtime.context import StateSnapshotContext
from holdfast.runtime.envelope import ChannelStatus
from holdfast.runtime.event_times import Numbers, Times
from holdfast.runtime.operator import MAX_WATERMARK, MIN_WATERMARK, Operator
from holdfast.runtime.split_watermarks import SplitTimes
from holdfast.runtime.watermark_pace import WatermarkPace
from holdfast.state.descriptors import ListStateDescriptor
from holdfast.types.typeinfo import FieldsTypeInfo, Types

_SPLITS = ListStateDescriptor("_split_watermarks", Types.TUPLE([Types.STRING(), Types.LONG()]))


class TimestampsAndWatermarksOperator(Operator):
    """Assigns timestamps with the user's strategy and follows them with the watermark ``max - bound - 1``.

    The watermark in force before each row is computed row by row, so that whether a row is late does not depend on
    how rows were cut into batches and epochs. The generator's maximum is operator state: a restored job does not go
    back in time.

    Directly behind a source that names the splits of its rows, each split has a maximum of its own, and the lowest of
    those that are not idle counts: a split that is ahead of another does not make that one's rows late.

    Where the program asks for an interval, a watermark is made when it is over, between batches of rows, and stays in
    force until the next.
    """

    passes_rows = True

    def bind_state(self) -> None:
        self._highest = MIN_WATERMARK
        #: By which the stream, and each of its splits, is idle.
        self.clock = PausableClock(self.environment.clock)
        self._quiet_since = self.clock.now()
        #: The time of the last look at who is idle.
        self._fired_at = self.environment.clock()
        self._state = self.environment.operator_state.get_union_list_state(
            ListStateDescriptor("_watermark", Types.LONG())
        )
        restored = list(self._state.get())
        if restored:
            # Which rows come to which subtask may have changed: only the lowest promise holds for all of them.
            self._highest = min(restored)
        self._pace = WatermarkPace.of(self.spec.watermark_interval_ms, self._highest, self.environment.clock())
        self._splits: SplitTimes | None = None
        if _SPLITS.name in self.environment.operator_state.get_registered_state_names():
            self._splits = self._split_times()

    def _split_times(self) -> SplitTimes:
        """Registered when there are splits, so that other jobs do not store what says nothing."""
        self._split_state = self.environment.operator_state.get_union_list_state(_SPLITS)
        return SplitTimes(self.body.idleness_ms, dict(self._split_state.get()))

    @property
    def _bound(self) -> int | None:
        """None where no watermarks are made: in a batch there is only the one at the end, as with the interval 0."""
        bound: int | None = self.body.bound_ms
        return None if self.spec.batch or self.spec.watermark_interval_ms == 0 else bound

    def process(self, batch: Batch, input_index: int) -> None:
        bound = self._bound
        timestamps = self._timestamps(batch)
        if bound is None:
            watermarks = np.full(len(timestamps), MIN_WATERMARK, dtype=np.int64)
        else:
            running = self._running_maximum(batch, timestamps)
            before = running[:-1] if self._pace is None else np.full(len(batch), self._pace.made, dtype=np.int64)
            self._highest = int(running[-1])
            # The lowest value stands for "nothing seen yet": nothing may wrap around below it.
            watermarks = np.maximum(before, MIN_WATERMARK + bound + 1) - (bound + 1)
        self._quiet_since = self.clock.now()
        if self._pace is not None:
            # What is due is made behind the rows that have come since.
            self._pace.tick(self._highest, self.environment.clock())
        self.output.collect(batch.timed(timestamps, watermarks))
        self._emit()

    def _running_maximum(self, batch: Batch, timestamps: Times) -> Numbers:
        """The generator's maximum before the first row and after each one."""
        numbers = timestamps.numbers
        assert numbers is not None, "every row has one"
        if batch.origin is None:
            return np.maximum.accumulate(np.append(self._highest, numbers))
        if self._splits is None:
            self._splits = self._split_times()
        now = self.clock.now()
        self._splits.keep(batch.origin.splits, now)
        slowest = self._splits.advance(batch.origin.split, numbers, now)
        # A split that wakes up, or is new, may be behind what was promised: promises stand.
        return np.maximum.accumulate(np.maximum(slowest, self._highest))

    def fire_processing_timers(self, now: int) -> None:
        """A split that has become idle no longer holds back the others."""
        self._fired_at = now
        if self._splits is not None and self.body.idleness_ms is not None:
            self._highest = max(self._highest, self._splits.slowest(self.clock.now()))
            self._emit()
        if self._pace is not None and self._pace.tick(self._highest, now):
            self._emit()
        super().fire_processing_timers(now)

    def holds_back(self, split: str, held_back: HeldBack) -> bool:
        """Whether a split of an aligned source is to wait for others."""
        if self._splits is None:
            return False
        now = self.clock.now()
        own, others = (self._watermark_at(highest) for highest in self._splits.lead(split, now))
        waits = own != MIN_WATERMARK and held_back.stops_split_at(own, others)
        if waits:
            self._splits.wait(split, now)
        return waits

    def _watermark_at(self, highest: int) -> int:
        bound = self._bound
        if bound is None or highest == MIN_WATERMARK:
            return MIN_WATERMARK
        return max(MIN_WATERMARK, highest - bound - 1)

    def process_watermark(self, watermark: int) -> None:
        # Watermarks from upstream end here, but for the last one.
        if watermark == MAX_WATERMARK:
            super().process_watermark(watermark)

    def next_processing_timer(self) -> int | None:
        """When a watermark is due that waits to be made, or the stream becomes idle, or one of its splits, if nothing
        comes until then.
        """
        made = None if self._pace is None or self._bound is None else self._pace.due(self._highest)
        return min((time for time in (made, *self._idle_from()) if time is not None), default=None)

    def _idle_from(self) -> list[int]:
        """Times that are still to come."""
        idleness = self.body.idleness_ms
        if idleness is None or self.clock.paused:
            return []
        quiet_since = [self._quiet_since, *(self._splits.quiet_since() if self._splits is not None else ())]
        times = [self.clock.when(since + idleness) for since in quiet_since]
        return [time for time in times if time > self._fired_at]

    @property
    def idle(self) -> bool:
        """True when the stream has been quiet for longer than the strategy's idleness."""
        idleness = self.body.idleness_ms
        return idleness is not None and self.clock.now() - self._quiet_since >= idleness

    def snapshot_state(self, context: StateSnapshotContext) -> None:
        self._state.update([self._highest])
        if self._splits is not None:
            self._split_state.update(self._splits.stored())

    def travelling_fields(self) -> dict[str, Any]:
        # The strategy travels for its assigner, which may remember rows.
        own = {
            "highest": self._highest,
            "clock": self.clock.dump(),
            "quiet_since": self._quiet_since,
            "strategy": self.body,
            "splits": self._splits,
            "pace": self._pace,
        }
        return {**super().travelling_fields(), **own}

    def adopt_fields(self, fields: dict[str, Any]) -> None:
        super().adopt_fields(fields)
        self._highest = fields["highest"]
        self.clock.load(fields["clock"])
        self._quiet_since = fields["quiet_since"]
        self.body = fields.get("strategy", self.body)
        self._pace = fields["pace"]
        if fields["splits"] is not None:
            self._split_times()
            self._splits = fields["splits"]

    def _timestamps(self, batch: Batch) -> Times:
        assigner = self.body.timestamp_assigner
        if batch.origin is not None and batch.timestamps is None:
            batch.timestamps = [MIN_WATERMARK if time < 0 else time for time in batch.origin.record_times]
        if assigner is None:
            known = [timestamp for timestamp in batch.timestamps or () if timestamp is not None]
            if len(known) < len(batch):
                raise self.failure(
                    ValueError(
                        "the watermark strategy has no timestamp assigner and the rows have no timestamps; add "
                        "with_timestamp_assigner(...)"
                    ),
                    batch.values[0],
                )
            return Times(known)
        if self.body.timestamp_column is not None and isinstance(self.spec.output_type, FieldsTypeInfo):
            return self._from_column(batch, self.spec.output_type, self.body.timestamp_column)
        recorded = [MIN_WATERMARK if timestamp is None else timestamp for timestamp in batch.timestamps or ()]
        recorded = recorded or [MIN_WATERMARK] * len(batch)
        value: Any = None
        out: list[int] = []
        try:
            for value, record_timestamp in zip(batch.values, recorded, strict=True):
                out.append(int(assigner.extract_timestamp(value, record_timestamp)))
        except BaseException as error:
            raise self.failure(error, value) from error
        return Times(out)

    def _from_column(self, batch: Batch, row_type: FieldsTypeInfo, column: str | int) -> Times:
        """What a field of rows says, by column where they are columns."""
        if batch.arrow is not None:
            times = Times.of_column(batch.arrow.column(column).cast(pa.int64()))
        else:
            times = Times(list(map(row_type.getter(column), batch.values)))
        if times.numbers is None:
            (row,) = batch.values_at([list(times.listed).index(None)])
            raise self.failure(ValueError(f"the field {column!r}, which is the event time, is null"), row)
        return times

    def _emit(self) -> None:
        highest = self._highest if self._pace is None else self._pace.made
        if self._bound is not None and highest != MIN_WATERMARK:
            super().process_watermark(self._watermark_at(highest))


class ChannelWatermarks:
    """The watermark of a chain's inputs: the minimum over channels that are neither idle nor ended."""

    def __init__(self) -> None:
        self._channels: dict[tuple[int, int], ChannelStatus] = {}

    def expect(self, edge: int, channel: int) -> None:
        """A channel that has said nothing yet holds the watermark back."""
        self._channels.setdefault((edge, channel), ChannelStatus(MIN_WATERMARK, False, False))

    def update(self, edge: int, channel: int, status: ChannelStatus) -> int:
        """Note what a channel promises; the watermark over all of them."""
        known = self._channels[edge, channel]
        promised = max(known.watermark, status.watermark)
        self._channels[edge, channel] = ChannelStatus(promised, status.idle, status.ended)
        return self.current()

    def current(self) -> int:
        active = [s.watermark for s in self._channels.values() if not s.idle and not s.ended]
        if active:
            return min(active)
        # With nobody active the best promise holds: an idle stream does not move time, an ended one moved it to the
        # end.
        return max((s.watermark for s in self._channels.values()), default=MIN_WATERMARK)

    def cap(self, edge: int, channel: int, watermarks: Times) -> Times:
        """The watermarks that hold while rows of one channel pass: its own, held back by the others."""
        others = [s.watermark for k, s in self._channels.items() if k != (edge, channel) and not s.idle and not s.ended]
        if not others:
            return watermarks
        numbers = watermarks.numbers
        assert numbers is not None, "every row has one"
        return Times(np.minimum(numbers, min(others)))

    @property
    def idle(self) -> bool:
        return bool(self._channels) and all(s.idle or s.ended for s in self._channels.values()) and not self.ended

    @property
    def ended(self) -> bool:
        return all(s.ended for s in self._channels.values())

    def dump(self) -> list[tuple[int, int, int, bool, bool]]:
        return [(e, c, s.watermark, s.idle, s.ended) for (e, c), s in self._channels.items()]

    def load(self, dumped: list[tuple[int, int, int, bool, bool]]) -> None:
        for edge, channel, watermark, idle, ended in dumped:
            self._channels[edge, channel] = ChannelStatus(watermark, idle, ended)
