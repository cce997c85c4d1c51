"""Tumbling and sliding windows, a batch of rows at a time.

All rows of a batch that are in time go into their windows first (see ``rows_first``), each window of a key being
touched once; windows that fire and rows that are late come after that in their order.

A window that begins and ends within a batch passes by: it is never in the state, and has no timers. For that it must be
sure that the state has nothing of it, and it is where it has no timer, because whatever a window has in the state goes
with a timer at its end or later.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Hashable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from holdfast.runtime.batch import Batch
from holdfast.runtime.event_times import Numbers
from holdfast.runtime.local_aggregation import FAR
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.folding import Groups
from holdfast.runtime.windowing.rows_first import RowsFirstOperator
from holdfast.runtime.windowing.time_windows import FixedSizeWindows
from holdfast.runtime.windowing.windows import TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue

#: Rows in windows that are folded at once, so that windows fire before too many others are begun.
_MOST_MEMBERS = 500_000


class KeysOfBatch:
    """The keys of a batch, each once, and for each row the number of its key."""

    def __init__(self, numbers: Numbers, identities: Sequence[Hashable], keys: Sequence[Any]) -> None:
        self.numbers = numbers
        self.identities = identities
        self.keys = keys

    def ordered_by(self, places: Sequence[bytes]) -> KeysOfBatch:
        """These keys, numbered in another order."""
        order = sorted(range(len(places)), key=places.__getitem__)
        numbers = np.empty(len(order), dtype=np.int64)
        numbers[order] = np.arange(len(order))
        return KeysOfBatch(
            numbers[self.numbers], [self.identities[place] for place in order], [self.keys[place] for place in order]
        )


class PassingWindow(NamedTuple):
    """A window that begins and ends within a batch."""

    window: TimeWindow
    #: The identities and the keys that have it, and what is kept for each, in the order in which timers would fire.
    identities: list[Hashable]
    keys: list[Any]
    kept: list[Any]


class FixedWindowOperator(RowsFirstOperator):
    """Windows of a fixed size that fire by their usual trigger. State is that of the loop, which takes batches of few
    rows.
    """

    #: A batch of fewer is faster in the loop.
    least_rows: int

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._assigner: FixedSizeWindows = self.plan.assigner  # type: ignore[assignment]  # no other comes here
        self._far = self._assigner.size + self._assigner.slide + self._lateness >= FAR
        #: In the order of their ends. At none of these times there is a timer.
        self._passing: deque[PassingWindow] = deque()

    @abstractmethod
    def _fits(self, batch: Batch) -> bool:
        """Whether its rows need not take the loop."""

    @abstractmethod
    def _keys_of_batch(self, batch: Batch) -> KeysOfBatch: ...

    @abstractmethod
    def _folded(
        self, batch: Batch, keys: KeysOfBatch, groups: Groups, rows: Numbers, before: list[Any]
    ) -> list[Any] | None:
        """What is kept of each group, of what was kept before and of its rows, in their order. None, with nothing done,
        where the loop must do it.
        """

    @abstractmethod
    def _elements(self, kept: Any) -> list[Any]:
        """What the function of windows sees of what is kept; nothing where it is not called."""

    # -- rows

    def _process_together(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        rows, most = len(batch), _MOST_MEMBERS // self._assigner.most_windows
        if rows < self.least_rows or most < self.least_rows or self._far or not self._fits(batch):
            self._process_one_by_one(batch)
        elif rows <= most:
            self._process_some(batch, ahead)
        else:
            for start in range(0, rows, most):
                last = start + most >= rows
                self._process_some(batch.part(start, min(start + most, rows)), ahead if last else MIN_WATERMARK)

    def _process_some(self, batch: Batch, ahead: int) -> None:
        times = self._times(batch)
        if times is None or not self._take_rows(batch, times, ahead):
            self._process_one_by_one(batch)

    def _times(self, batch: Batch) -> Numbers | None:
        """What the rows are assigned to windows by; None where a loop is to do it."""
        rows = len(batch)
        if not self._event_time:
            return np.full(rows, self.processing_time(), dtype=np.int64)
        times = None if batch.times is None else batch.times.numbers
        if times is None:
            return None
        return times if max(-int(times.min()), int(times.max())) < FAR else None

    def _take_rows(self, batch: Batch, times: Numbers, ahead: int) -> bool:
        """False, with nothing done, where a loop must do it."""
        watermarks = self._watermarks(batch)
        try:
            rows, starts = self._assigner.starts_of(times)
            keys = self._keys_of_batch(batch)
            late: list[tuple[int, TimeWindow | None]] = []
            if self._event_time:
                in_time = starts + (self._assigner.size - 1) > watermarks[rows]
                if not in_time.all() or self.plan.late_tag is not None:
                    late = self._late(rows, starts, times, watermarks)
                    rows, starts = rows[in_time], starts[in_time]
            until = max(int(watermarks[-1]), ahead)
            if len(rows) and self._may_pass(int(starts.min()), until):
                # Then what they give is in the order in which timers would fire.
                keys = keys.ordered_by(self.keyed_state.timers_ordered_by(keys.identities, keys.keys))
            if not self._fold(batch, keys, rows, starts, until):
                return False
        except BaseException as error:
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

    def _fold(self, batch: Batch, keys: KeysOfBatch, rows: Numbers, starts: Numbers, until: int) -> bool:
        """Put rows into windows, each touched once. False, with nothing done, where a loop must do it. ``until``: event
        time right behind the batch.
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
        after = self._folded(batch, keys, groups, rows, before)
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
        self._contents.set_current_namespace(window)
        return self._contents.kept_many(identities, keys)  # type: ignore[no-any-return]  # contents are of many kinds

    def _set_kept(self, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        """What keys have in the window that is the current namespace."""
        self._contents.keep_many(identities, keys, kept)

    def _keep(self, window: TimeWindow, identities: list[Hashable], keys: list[Any], kept: list[Any]) -> None:
        self._contents.set_current_namespace(window)
        self._set_kept(identities, keys, kept)
        last = window.max_timestamp()
        added = dict(zip(identities, keys, strict=True))
        for time in {last, last + self._lateness}:
            self._cleanup_timers.register_many(time, window, added, self._is_new)

    def _may_pass(self, start: int, until: int) -> bool:
        """Whether windows from one with this start on may begin and end within a batch."""
        return self._event_time and not self._lateness and start + self._assigner.size - 1 <= until

    def _that_pass(self, windows: list[TimeWindow], until: int) -> set[TimeWindow]:
        """The windows that begin and end within a batch."""
        if not self._may_pass(windows[0].start, until):
            return set()
        ended = [(window.max_timestamp(), window) for window in windows if window.max_timestamp() <= until]
        # By the clock, when the program's windows were before a restore.
        queues = self._event_timers, self._processing_timers
        return {window for last, window in ended if not any(queue.may_have(last, window) for queue in queues)}

    def _is_new(self, identity: Hashable) -> bool:
        """Whether a key surely had no timer for the end of the window that is at hand: it had no contents. A timer all
        the same, of another trigger before a restore, or of rows of which a function kept nothing, gives nothing, and
        goes with this one: without lateness there are none again.
        """
        return self._lateness == 0 and self._contents.is_absent(identity)

    # -- time

    def _next_due(self) -> int | None:
        due = super()._next_due()
        if not self._passing:
            return due
        passes = self._passing[0].window.max_timestamp()
        return passes if due is None else min(due, passes)

    def _fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        while domain is TimeDomain.EVENT_TIME and self._passing:
            last = self._passing[0].window.max_timestamp()
            if last > to:
                break
            self._fire_stored(timers, last, domain)
            self._fire_passing(self._passing.popleft())
        self._fire_stored(timers, to, domain)

    def _fire_stored(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        super()._fire_due(timers, to, domain)

    def _fire_passing(self, passing: PassingWindow) -> None:
        context, function, window = self.key_context, self.plan.function, passing.window
        at_window, extend, before = self._context.at(window), self._out.extend, len(self._out)
        try:
            for context.identity, context.key, kept in zip(passing.identities, passing.keys, passing.kept, strict=True):
                elements = [] if kept is None else self._elements(kept)
                if elements and (results := function.process(context.key, at_window, elements)) is not None:
                    extend(self.yielded(results))
                function.clear(at_window)
        except BaseException as error:
            raise self.failure(error, f"timer at {window.max_timestamp()}", context.key) from error
        given = len(self._out) - before
        self._out_times.extend([window.max_timestamp()] * given)
        self._out_watermarks.extend([self.watermark] * given)

    def _let_time_pass(
        self, batch: Batch, keys: KeysOfBatch, watermarks: list[int], late: list[tuple[int, TimeWindow | None]]
    ) -> None:
        """What happened between the rows, and with those that are late."""
        positions = [row for row, _ in late]
        numbers, stored, timestamps = keys.numbers[positions].tolist(), self._stored, batch.timestamps or ()
        for (row, window), value, number in zip(late, batch.values_at(positions), numbers, strict=True):
            self._come_to(watermarks, row)
            self.key_context.key, self.key_context.identity = keys.keys[number], keys.identities[number]
            if window is None:
                self.late(value, timestamps[row])  # type: ignore[arg-type]  # none is None
            else:
                self._add_late(value if stored is None else stored(value, timestamps[row]), window)
        self._come_to(watermarks, len(watermarks) - 1)

    def _add_late(self, value: Any, window: TimeWindow) -> None:
        """A row of the current key in a window that has fired, and fires again for it."""
        self._contents.set_current_namespace(window)
        try:
            self._contents.add(value)
            self.fire(window, keep=True)
        except BaseException as error:
            raise self.failure(error, value, self.key_context.key) from error
        self._cleanup_timers.register(self._cleanup_time(window), window)
