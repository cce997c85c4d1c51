"""Tumbling and sliding windows, a batch of rows at a time.

All rows of a batch that are in time go into their windows first (see ``batches_first``), each window of a key being
touched once; windows that fire and rows that are late come after that in their order.

A window that begins and ends within a batch passes by: it is never in the state, and has no timers. For that it must be
sure that the state has nothing of it, and it is where it has no timer, because whatever a window has in the state goes
with a timer at its end or later.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.local_aggregation import FAR
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.windowing.batches_first import BatchTaker
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.group_folding import GroupFolding, PassingWindow
from holdfast.runtime.windowing.keys_of_batch import KeysOfBatch
from holdfast.runtime.windowing.row_taker import OneByOne
from holdfast.runtime.windowing.time_between_rows import TimeBetweenRows
from holdfast.runtime.windowing.time_windows import FixedSizeWindows
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator


class FixedBatches(BatchTaker):
    """Windows of a fixed size that fire by their usual trigger. State is that of rows that come one by one, as those of
    batches of few rows do.
    """

    def __init__(self, operator: WindowOperator, assigner: FixedSizeWindows, folding: GroupFolding) -> None:
        super().__init__(operator)
        path, lateness = operator.plan.path, operator.lateness
        self.by_column = folding.by_column
        self._assigner = assigner
        self._folding = folding
        self._contents = folding.contents
        self._lateness = lateness
        self._one_by_one = OneByOne(operator)
        self._time = TimeBetweenRows(operator, self._next_due)
        self._least_rows = folding.least_rows if path.least_rows is None else path.least_rows
        self._most_rows = path.most_members // assigner.most_windows
        self._far = assigner.size + assigner.slide + lateness >= FAR
        #: In the order of their ends. At none of these times there is a timer.
        self._passing: deque[PassingWindow] = deque()

    # -- rows

    def take(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        rows, most = len(batch), self._most_rows
        if min(rows, most) < self._least_rows or self._far or not self._folding.fits(batch):
            self._one_by_one.take(batch)
        elif rows <= most:
            self._process_some(batch, ahead)
        else:
            for start in range(0, rows, most):
                last = start + most >= rows
                self._process_some(batch.part(start, min(start + most, rows)), ahead if last else MIN_WATERMARK)

    def _process_some(self, batch: Batch, ahead: int) -> None:
        times = self._times(batch)
        if times is None or not self._take_rows(batch, times, ahead):
            self._one_by_one.take(batch)

    def _times(self, batch: Batch) -> Numbers | None:
        """What the rows are assigned to windows by; None where they must go one by one."""
        rows = len(batch)
        if not self.operator.event_time:
            return np.full(rows, self.operator.processing_time(), dtype=np.int64)
        times = None if batch.times is None else batch.times.numbers
        if times is None:
            return None
        return times if max(-int(times.min()), int(times.max())) < FAR else None

    def _take_rows(self, batch: Batch, times: Numbers, ahead: int) -> bool:
        """False, with nothing done, where rows must go one by one."""
        operator = self.operator
        watermarks = self._time.watermarks(batch)
        try:
            rows, starts = self._assigner.starts_of(times)
            keys = self._folding.keys_of(batch)
            late: list[tuple[int, TimeWindow | None]] = []
            if operator.event_time:
                in_time = starts + (self._assigner.size - 1) > watermarks[rows]
                if not in_time.all() or operator.plan.late_tag is not None:
                    late = self._late(rows, starts, times, watermarks)
                    rows, starts = rows[in_time], starts[in_time]
            until = max(int(watermarks[-1]), ahead)
            if len(rows) and self._may_pass(int(starts.min()), until):
                # Then what they give is in the order in which timers would fire.
                keys = keys.ordered_by(operator.keyed_state.timers_ordered_by(keys.identities, keys.keys))
            if not self._fold(batch, keys, rows, starts, until):
                return False
        except BaseException as error:
            raise operator.failure(error, f"one of {len(batch)} rows of a batch") from error
        self._let_time_pass(batch, keys, watermarks.tolist(), late)
        operator.flush()
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
        if self.operator.plan.late_tag is not None:
            gone = np.bincount(rows[kept], minlength=len(times)) == 0
            late += [(row, None) for row in np.flatnonzero(gone & (times + self._lateness <= watermarks)).tolist()]
        return sorted(late, key=itemgetter(0))

    def _fold(self, batch: Batch, keys: KeysOfBatch, rows: Numbers, starts: Numbers, until: int) -> bool:
        """Put rows into windows, each touched once. False, with nothing done, where they must go one by one. ``until``:
        event time right behind the batch.
        """
        if not len(rows):
            return True
        groups = Groups.of(starts, keys.numbers[rows], self._assigner.slide)
        numbers = groups.keys.tolist()
        identities, their_keys = ([some[number] for number in numbers] for some in (keys.identities, keys.keys))
        size = self._assigner.size
        windows = [(TimeWindow(start, start + size), slice(*bounds)) for start, *bounds in groups.windows()]
        passing = self._that_pass([window for window, _ in windows], until)
        before: list[Any] = []
        for window, some in windows:
            if window in passing:
                before += [None] * (some.stop - some.start)
            else:
                before += self._kept(window, identities[some], their_keys[some])
        after = self._folding.folded(batch, keys, groups, rows, before)
        if after is None:
            return False
        for window, some in windows:
            if window not in passing:
                self._keep(window, identities[some], their_keys[some], after[some])
            else:
                self._passing.append(PassingWindow(window, identities[some], their_keys[some], after[some]))
        return True

    def _kept(self, window: TimeWindow, identities: list[Hashable], keys: list[Any]) -> list[Any]:
        """What keys have in a window; None for nothing."""
        self._contents.state.set_current_namespace(window)
        return self._contents.kept_many(identities, keys)

    def _keep(self, window: TimeWindow, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        self._contents.state.set_current_namespace(window)
        self._contents.keep_many(identities, keys, kept)
        last = window.max_timestamp()
        added = dict(zip(identities, keys, strict=True))
        for time in {last, last + self._lateness}:
            self.operator.cleanup_timers.register_many(time, window, added, self._is_new)

    def _may_pass(self, start: int, until: int) -> bool:
        """Whether windows from one with this start on may begin and end within a batch."""
        return self.operator.event_time and not self._lateness and start + self._assigner.size - 1 <= until

    def _that_pass(self, windows: list[TimeWindow], until: int) -> set[TimeWindow]:
        """The windows that begin and end within a batch."""
        if not self._may_pass(windows[0].start, until):
            return set()
        ended = [(window.max_timestamp(), window) for window in windows if window.max_timestamp() <= until]
        # By processing time, when the program's windows were before a restore.
        both = self.operator.event_timers, self.operator.processing_timers
        return {window for last, window in ended if not any(timers.may_have(last, window) for timers in both)}

    def _is_new(self, identity: Hashable) -> bool:
        """Whether a key surely had no timer for the end of the window that is at hand: it had no contents. A timer all
        the same, of another trigger before a restore, or of rows of which a function kept nothing, gives nothing, and
        goes with this one: without lateness there are none again.
        """
        return self._lateness == 0 and self._contents.is_absent(identity)

    # -- time

    def _next_due(self) -> int | None:
        due = self.operator.event_timers.next_timestamp()
        if not self._passing:
            return due
        passes = self._passing[0].window.max_timestamp()
        return passes if due is None else min(due, passes)

    def before_timers(self) -> None:
        self._folding.before_timers()

    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        while domain is TimeDomain.EVENT_TIME and self._passing:
            last = self._passing[0].window.max_timestamp()
            if last > to:
                break
            self._folding.fire_stored(timers, last, domain)
            self._folding.fire_passing(self._passing.popleft())
        self._folding.fire_stored(timers, to, domain)

    def _let_time_pass(
        self, batch: Batch, keys: KeysOfBatch, watermarks: list[int], late: list[tuple[int, TimeWindow | None]]
    ) -> None:
        """What happened between the rows, and with those that are late."""
        operator, context = self.operator, self.operator.key_context
        positions = [row for row, _ in late]
        numbers, stored, timestamps = keys.numbers[positions].tolist(), self._contents.stored, batch.timestamps or ()
        for (row, window), value, number in zip(late, batch.values_at(positions), numbers, strict=True):
            self._time.come_to(watermarks, row)
            context.key, context.identity = keys.keys[number], keys.identities[number]
            if window is None:
                operator.late(value, timestamps[row])  # type: ignore[arg-type]  # none is None
            else:
                self._add_late(value if stored is None else stored(value, timestamps[row]), window)
        self._time.come_to(watermarks, len(watermarks) - 1)

    def _add_late(self, value: Any, window: TimeWindow) -> None:
        """A row of the current key in a window that has fired, and fires again for it."""
        operator, state = self.operator, self._contents.state
        state.set_current_namespace(window)
        try:
            state.add(value)
            self._contents.fire(window, keep=True)
        except BaseException as error:
            raise operator.failure(error, value, operator.key_context.key) from error
        operator.cleanup_timers.register(operator.cleanup_time(window), window)
