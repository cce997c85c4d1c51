"""Windows of a fixed size with known aggregates, by column (see ``fixed_windows``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.partial_aggregates import Partial
from holdfast.runtime.partial_columns import ArrowColumn, Values
from holdfast.runtime.windowing.by_row import FoldingByRow
from holdfast.runtime.windowing.folding import Groups, distinct_keys
from holdfast.runtime.windowing.group_folding import GroupFolding, PassingWindow
from holdfast.runtime.windowing.keys_of_batch import KeysOfBatch
from holdfast.runtime.windowing.known_aggregates import WindowAggregation
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP, TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue
from holdfast.types.arrow import row_reader

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator
    from holdfast.runtime.windowing.stored_contents import BatchContents


class FoldingByColumn(GroupFolding):
    """Folds columns, and fires the keys of a window together. What columns cannot do exactly, a sum that comes near 64
    bits, goes one by one; so do few keys.
    """

    least_rows = 128
    by_column = True

    def __init__(
        self, operator: WindowOperator, contents: BatchContents, known: WindowAggregation, few: FoldingByRow
    ) -> None:
        """``few``: what fires the windows of few keys."""
        super().__init__(operator, contents)
        self._few = few
        self._known = known
        self._partials = known.aggregation.partials
        self._writers = [_writer(partial) for partial in self._partials]
        self._taken = known.taken
        self._timed = any(one.timed for one in known.taken)
        self._state = contents.state
        self._read_rows = row_reader(operator.spec.output_type)
        self._least_timers, self._most_timers = operator.plan.path.least_timers, operator.plan.path.most_timers
        #: The watermark in force for what timers emit.
        self._handed_at = MIN_WATERMARK

    # -- rows

    def fits(self, batch: Batch) -> bool:
        return batch.arrow is not None

    def keys_of(self, batch: Batch) -> KeysOfBatch:
        distinct, numbers = distinct_keys(batch.key_column)
        return KeysOfBatch(numbers, *self.operator.keyed_state.identified(distinct))

    def folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any] | None:
        assert batch.arrow is not None
        columns: dict[str | None, Values | None] = {None: None}
        times = batch.times.numbers if self._timed and batch.times is not None else None
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

    # -- firing

    def before_timers(self) -> None:
        # What rows gave goes ahead: so all that is there later comes of timers.
        self.operator.flush()
        self._handed_at = self.operator.watermark

    def fire_stored(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        operator = self.operator
        for timestamp, due in timers.advance_together(to, self._most_timers):
            if len(due) < self._least_timers or not self._fire_together(timestamp, due, domain):
                one_by_one = [(timestamp, key, namespace) for key, namespace in due]
                operator.fire_timers(one_by_one, domain, operator.on_timer)

    def _fire_together(self, timestamp: int, timers: list[tuple[Any, Any]], domain: TimeDomain) -> bool:
        """Timers of one time. False, with nothing done, where they must be taken one by one."""
        by_event = domain is TimeDomain.EVENT_TIME
        if by_event is not self.operator.event_time:
            return False
        keys_of: dict[Any, list[Any]] = {}
        for key, namespace in timers:
            keys_of.setdefault(namespace, []).append(key)
        windows = {self.operator.windows.restore(namespace): keys for namespace, keys in keys_of.items()}
        firing = [window for window in windows if not by_event or timestamp == window.max_timestamp()]
        if len(firing) > 1:
            # What they give is in the order of keys.
            return False
        for window, keys in windows.items():
            self._end(timestamp, window, keys, window in firing)
        return True

    def _end(self, timestamp: int, window: TimeWindow, keys: list[Any], fires: bool) -> None:
        operator, state = self.operator, self._state
        identities = operator.identities_of(keys)
        operator.cleanup_timers.gone_many(timestamp, window, identities)
        state.set_current_namespace(window)
        if fires:
            accumulators = state.kept_many(identities, keys)
            if None in accumulators:
                there = [place for place, one in enumerate(accumulators) if one is not None]
                self._give([keys[place] for place in there], window, [accumulators[place] for place in there])
            else:
                self._give(keys, window, accumulators)
        cleanup = operator.cleanup_time(window)
        if timestamp >= cleanup:
            state.remove_many(identities, keys)
        elif cleanup < MAX_TIMESTAMP:
            # Where lateness was less when its rows came, nothing else would remove it.
            still_there = dict(zip(identities, keys, strict=True))
            operator.cleanup_timers.register_many(cleanup, window, still_there, lambda identity: False)

    def fire_passing(self, passing: PassingWindow) -> None:
        if len(passing.keys) < self._least_timers:
            self._few.fire_passing(passing)
        else:
            self._give(passing.keys, passing.window, passing.kept)

    def _give(self, keys: list[Any], window: TimeWindow, accumulators: list[Any]) -> None:
        if not keys:
            return
        operator = self.operator
        operator.flush(self._handed_at)
        columns = zip(*accumulators, strict=True)
        kept = [write(column) for write, column in zip(self._writers, columns, strict=True)]
        rows = self._known.results(operator.keyed_state.key_column(keys), window, kept)
        times: tuple[Any, Any] = (None, None)
        if operator.spec.event_time:
            times = [window.max_timestamp()] * len(keys), [self._handed_at] * len(keys)
        operator.output.collect_untagged(Batch(None, *times, arrow=rows, reader=self._read_rows))


def _writer(partial: Partial) -> Callable[[Sequence[Any]], pa.Array]:
    """Makes a column of what is kept of several keys."""
    if isinstance(partial.function.columns, ArrowColumn):
        kept_as = partial.type_info.arrow_type()
        return lambda kept: pa.array(kept, kept_as)
    return partial.type_info.column_writer()
