"""Windows of a fixed size with known aggregates, by column (see ``fixed_windows``)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.partial_columns import Values
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.fixed_windows import FixedWindowOperator, KeysOfBatch, PassingWindow
from holdfast.runtime.windowing.folding import Groups, distinct_keys
from holdfast.runtime.windowing.known_aggregates import WindowAggregation
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP, TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.types.arrow import row_reader

#: Fewer timers of one time are faster one by one.
LEAST_TIMERS = 32
#: Keys whose windows fire at once.
_MOST_TIMERS = 65_536


class ColumnWindowOperator(FixedWindowOperator):
    """Known aggregates. What columns cannot do exactly, a sum that comes near 64 bits, the loop does."""

    by_column = True
    least_rows = 128

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._known: WindowAggregation = self.plan.function.known  # type: ignore[attr-defined]  # GiveRow
        self._partials = self._known.aggregation.partials
        self._taken = self._known.taken
        self._read_rows = row_reader(spec.output_type)
        #: The watermark in force for what timers emit.
        self._handed_at = MIN_WATERMARK

    # -- rows

    def _fits(self, batch: Batch) -> bool:
        return batch.arrow is not None

    def _keys_of_batch(self, batch: Batch) -> KeysOfBatch:
        distinct, numbers = distinct_keys(batch.key_column)
        return KeysOfBatch(numbers, *self.keyed_state.identified(distinct))

    def _folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any] | None:
        assert batch.arrow is not None
        columns: dict[str | None, Values | None] = {None: None}
        times = batch.times.numbers if self.plan.timed and batch.times is not None else None
        after: list[list[Any]] = []
        for place, partial in enumerate(self._taken):
            name = partial.column
            if name not in columns:
                columns[name] = Values.of(batch.arrow.column(name), rows, times)
            kept = [None if one is None else one[place] for one in before]
            folded = partial.function.columns.folded(partial, kept, groups.members, columns[name])
            if folded is None:
                return None
            after.append(folded)
        return list(zip(*after, strict=True))

    # -- time

    def _advance(self, watermark: int) -> None:
        # What rows gave goes ahead: so all that is there later comes of timers.
        self._flush()
        self._handed_at = self.watermark
        super()._advance(watermark)

    def fire_processing_timers(self, now: int) -> None:
        self._handed_at = self.watermark
        super().fire_processing_timers(now)

    # -- firing

    def _fire_stored(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
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
            accumulators = contents.kept_many(identities, keys)
            if None in accumulators:
                there = [place for place, one in enumerate(accumulators) if one is not None]
                self._give([keys[place] for place in there], window, [accumulators[place] for place in there])
            else:
                self._give(keys, window, accumulators)
        cleanup = self._cleanup_time(window)
        if timestamp >= cleanup:
            contents.remove_many(identities, keys)
        elif cleanup < MAX_TIMESTAMP:
            # Where lateness was less when its rows came, nothing else would remove it.
            still_there = dict(zip(identities, keys, strict=True))
            self._cleanup_timers.register_many(cleanup, window, still_there, lambda identity: False)

    def _fire_passing(self, passing: PassingWindow) -> None:
        if len(passing.keys) < LEAST_TIMERS:
            super()._fire_passing(passing)
        else:
            self._give(passing.keys, passing.window, passing.kept)

    def _elements(self, kept: Any) -> list[Any]:
        return [self._contents.result_of(kept)]

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
