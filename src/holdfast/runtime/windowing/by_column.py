"""Windows of a fixed size with known aggregates, a batch at a time.

All rows of a batch that are in time go into their windows first (see ``rows_first``), each window of a key being
touched once; windows that fire and rows that are late come after that in their order.
"""

from __future__ import annotations

from collections.abc import Hashable
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.runtime.batch import Batch
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.folding import Groups, Numbers, Values, distinct_keys, fold
from holdfast.runtime.windowing.known_aggregates import WindowAggregation
from holdfast.runtime.windowing.operator import WindowOperator
from holdfast.runtime.windowing.rows_first import RowsFirstOperator
from holdfast.runtime.windowing.time_windows import FixedSizeWindows
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.types.arrow import row_reader

#: A batch of fewer rows is faster in a loop.
LEAST_ROWS = 128
#: Fewer timers of one time are faster one by one.
LEAST_TIMERS = 32
#: Keys whose windows fire at once.
_MOST_TIMERS = 65_536
#: Rows in windows that are folded at once, so that windows fire before too many others are begun.
_MOST_MEMBERS = 100_000
#: Times, and lengths of time, beyond it are not computed with in 64 bits.
_FAR = 1 << 60


class KeysOfBatch:
    """The keys of a batch, each once."""

    def __init__(self, operator: WindowOperator, column: pa.Array) -> None:
        distinct, self.numbers = distinct_keys(column)
        self.identities, self.keys = operator.keyed_state.identified(distinct)


class ColumnWindowOperator(RowsFirstOperator):
    """Known aggregates of tumbling and sliding windows that fire by their usual trigger. What columns cannot do
    exactly, a sum that comes near 64 bits, the loop does, as it does batches of few rows. State is the same in both.
    """

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._known: WindowAggregation = self.plan.function.known  # type: ignore[attr-defined]  # GiveRow
        self._partials = self._known.aggregation.partials
        self._assigner: FixedSizeWindows = self.plan.assigner  # type: ignore[assignment]  # no other comes here
        self._far = self._assigner.size + self._assigner.slide + self._lateness >= _FAR
        self._read_rows = row_reader(spec.output_type)
        #: The watermark in force for what timers emit.
        self._handed_at = MIN_WATERMARK

    # -- rows

    def process(self, batch: Batch, input_index: int) -> None:
        rows, most = len(batch), _MOST_MEMBERS // self._assigner.most_windows
        if rows < LEAST_ROWS or most < LEAST_ROWS or batch.arrow is None or self._far:
            super().process(batch, input_index)
            return
        if rows <= most:
            self._process_some(batch, input_index)
            return
        for start in range(0, rows, most):
            self._process_some(batch.part(start, min(start + most, rows)), input_index)

    def _process_some(self, batch: Batch, input_index: int) -> None:
        times = self._times(batch)
        if times is None or not self._process_columns(batch, times):
            super().process(batch, input_index)

    def _times(self, batch: Batch) -> Numbers | None:
        """What the rows are assigned to windows by; None where a loop is to do it."""
        rows = len(batch)
        if not self._event_time:
            return np.full(rows, self.processing_time(), dtype=np.int64)
        timestamps = batch.timestamps
        if timestamps is None or None in timestamps:
            return None
        times: Numbers = np.array(timestamps, dtype=np.int64)
        return times if max(-int(times.min()), int(times.max())) < _FAR else None

    def _process_columns(self, batch: Batch, times: Numbers) -> bool:
        """False, with nothing done, where a loop must do it."""
        watermarks = self._watermarks(batch)
        try:
            rows, starts = self._assigner.starts_of(times)
            keys = KeysOfBatch(self, batch.key_column)
            late: list[tuple[int, TimeWindow | None]] = []
            if self._event_time:
                in_time = starts + (self._assigner.size - 1) > watermarks[rows]
                if not in_time.all() or self.plan.late_tag is not None:
                    late = self._late(rows, starts, times, watermarks)
                    rows, starts = rows[in_time], starts[in_time]
            if not self._fold(batch, keys, rows, starts):
                return False
        except Exception as error:
            raise self.failure(error, f"one of {len(batch)} rows of a batch") from error
        self._let_time_pass(batch, keys, watermarks.tolist(), late)
        self._flush()
        return True

    def _late(
        self, rows: Numbers, starts: Numbers, times: Numbers, watermarks: Numbers
    ) -> list[tuple[int, TimeWindow | None]]:
        """Rows in the order in which they came: each with a window that has fired and is kept, or, where all its
        windows are gone, with None.
        """
        size, now = self._assigner.size, watermarks[rows]
        lasts = starts + (size - 1)
        kept = lasts + self._lateness > now
        again = np.flatnonzero(kept & (lasts <= now))
        late: list[tuple[int, TimeWindow | None]] = [
            (row, TimeWindow(start, start + size))
            for row, start in zip(rows[again].tolist(), starts[again].tolist(), strict=True)
        ]
        if self.plan.late_tag is not None:
            gone = np.bincount(rows[kept], minlength=len(times)) == 0
            late += [(row, None) for row in np.flatnonzero(gone & (times + self._lateness <= watermarks)).tolist()]
        return sorted(late, key=itemgetter(0))

    def _fold(self, batch: Batch, keys: KeysOfBatch, rows: Numbers, starts: Numbers) -> bool:
        """Put rows into windows, each touched once. False, with nothing done, where a loop must do it."""
        if not len(rows):
            return True
        groups = Groups.of(starts, keys.numbers[rows], self._assigner.slide)
        numbers = groups.keys.tolist()
        identities, their_keys = ([some[number] for number in numbers] for some in (keys.identities, keys.keys))
        size, contents = self._assigner.size, self._contents
        windows = [(TimeWindow(start, start + size), slice(*bounds)) for start, *bounds in groups.windows()]
        before: list[Any] = []
        for window, some in windows:
            contents.set_current_namespace(window)
            before += contents.accumulators(identities[some], their_keys[some])
        after = self._folded(batch, before, groups, rows)
        if after is None:
            return False
        for window, some in windows:
            contents.set_current_namespace(window)
            contents.put_accumulators(identities[some], their_keys[some], after[some])
            last = window.max_timestamp()
            added = dict(zip(identities[some], their_keys[some], strict=True))
            for time in {last, last + self._lateness}:
                self._cleanup_timers.register_many(time, window, added, self._is_new)
        return True

    def _is_new(self, identity: Hashable) -> bool:
        """Whether a key surely had no timer for the end of the window that is at hand: it had no contents. A timer all
        the same, of another trigger before a restore, would give nothing: without lateness there are none again.
        """
        return self._lateness == 0 and self._contents.is_absent(identity)

    def _folded(self, batch: Batch, before: list[Any], groups: Groups, rows: Numbers) -> list[Any] | None:
        assert batch.arrow is not None
        columns: dict[str | None, Values | None] = {None: None}
        after: list[list[Any]] = []
        for place, partial in enumerate(self._partials):
            if partial.field not in columns:
                columns[partial.field] = Values.of(batch.arrow.column(partial.field), rows)
            kept = [None if one is None else one[place] for one in before]
            folded = fold(partial, kept, groups.members, columns[partial.field])
            if folded is None:
                return None
            after.append(folded)
        return list(zip(*after, strict=True))

    # -- time

    def _let_time_pass(
        self, batch: Batch, keys: KeysOfBatch, watermarks: list[int], late: list[tuple[int, TimeWindow | None]]
    ) -> None:
        """What happened between the rows, and with those that are late."""
        positions = [row for row, _ in late]
        numbers = keys.numbers[positions].tolist()
        for (row, window), value, number in zip(late, batch.values_at(positions), numbers, strict=True):
            self._come_to(watermarks, row)
            self.key_context.key, self.key_context.identity = keys.keys[number], keys.identities[number]
            if window is None:
                assert batch.timestamps is not None
                self.late(value, batch.timestamps[row])  # type: ignore[arg-type]  # none is None
            else:
                self._add_late(value, window)
        self._come_to(watermarks, len(watermarks) - 1)

    def _add_late(self, value: Any, window: TimeWindow) -> None:
        """A row of the current key in a window that has fired, and fires again for it."""
        self._contents.set_current_namespace(window)
        try:
            self._contents.add(value)
            self.fire(window, keep=True)
        except Exception as error:
            raise self.failure(error, value, self.key_context.key) from error
        self._cleanup_timers.register(self._cleanup_time(window), window)

    def _advance(self, watermark: int) -> None:
        # What rows gave goes ahead: so all that is there later comes of timers.
        self._flush()
        self._handed_at = self.watermark
        super()._advance(watermark)

    def fire_processing_timers(self, now: int) -> None:
        self._handed_at = self.watermark
        super().fire_processing_timers(now)

    # -- firing

    def _fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        for timestamp, due in timers.advance_together(to, _MOST_TIMERS):
            if len(due) < LEAST_TIMERS or not self._fire_together(timestamp, due, domain):
                self._fire([(timestamp, key, namespace) for key, namespace in due], domain)

    def _fire_together(self, timestamp: int, timers: list[tuple[Any, Any]], domain: TimeDomain) -> bool:
        """Timers of one time. False, with nothing done, where they must be taken one by one."""
        by_event = domain is TimeDomain.EVENT_TIME
        if by_event is not self._event_time:
            return False
        keys_of: dict[Any, list[Any]] = {}
        for key, namespace in timers:
            keys_of.setdefault(namespace, []).append(key)
        windows = {self.windows.restore(namespace): keys for namespace, keys in keys_of.items()}
        firing = [window for window in windows if not by_event or timestamp == window.max_timestamp()]
        if len(firing) > 1:
            # What they give is in the order of keys.
            return False
        for window, keys in windows.items():
            self._end(timestamp, window, keys, window in firing)
        return True

    def _end(self, timestamp: int, window: TimeWindow, keys: list[Any], fires: bool) -> None:
        identities = keys if self._trivial_identity else list(map(self._identity, keys))
        self._cleanup_timers.gone_many(timestamp, window, identities)
        contents = self._contents
        contents.set_current_namespace(window)
        if fires:
            accumulators = contents.accumulators(identities, keys)
            if None in accumulators:
                there = [place for place, one in enumerate(accumulators) if one is not None]
                self._give([keys[place] for place in there], window, [accumulators[place] for place in there])
            else:
                self._give(keys, window, accumulators)
        if timestamp >= self._cleanup_time(window):
            contents.remove_accumulators(identities, keys)

    def _give(self, keys: list[Any], window: TimeWindow, accumulators: list[Any]) -> None:
        if not keys:
            return
        if self._out:
            self._out_watermarks = [self._handed_at] * len(self._out)
            self._flush()
        columns = zip(*accumulators, strict=True)
        kept = [
            pa.array(column, partial.type_info.arrow_type())
            for partial, column in zip(self._partials, columns, strict=True)
        ]
        rows = self._known.results(self.keyed_state.key_column(keys), window, kept)
        times: tuple[Any, Any] = (None, None)
        if self.spec.event_time:
            times = [window.max_timestamp()] * len(keys), [self._handed_at] * len(keys)
        self.output.collect_untagged(Batch(None, *times, arrow=rows, reader=self._read_rows))
