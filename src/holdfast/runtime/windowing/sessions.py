"""Sessions with an aggregate or a reduced row, a batch at a time.

A row that comes on its own is a merge: its window is added to those of its key and made one with the session that goes
on. Here the sessions of a batch's keys are taken out of the state once, rows are folded into them one after the other,
and what became of them is put back once. It is what rows give one by one, because no two keys know of each other, and
for a key everything happens in the order of its rows: a session that event time has passed at a row's turn is left as
it is, and fires afterwards. Rows that are or may be late go on their own, each at its turn.

Where a session fires once, its timer stays when it goes on, and is early then: when it fires it registers the next one.

Rows that go one by one keep the contents of a session under its first window. Here they are under one of a few
namespaces that no window has (see ``sessions_of_key``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.keyed import ROWS_AT_ONCE
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.windowing.batches_first import BatchTaker
from holdfast.runtime.windowing.row_taker import OneByOne
from holdfast.runtime.windowing.session_windows import SessionWindows
from holdfast.runtime.windowing.sessions_of_key import Session, SessionsOfKey
from holdfast.runtime.windowing.stored_contents import FoldedContents
from holdfast.runtime.windowing.time_between_rows import TimeBetweenRows
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP, TimeWindow
from holdfast.state.timers import TimeDomain, TimerQueue

if TYPE_CHECKING:
    from holdfast.runtime.windowing.operator import WindowOperator

#: A batch of fewer rows is as fast one by one.
_LEAST_ROWS = 8
#: The number of a row, its key, the key's identity, the row, the start and the end of its window, and the watermark.
Rows = Iterator[tuple[int, Any, Hashable, Any, int, int, int]]


class SessionBatches(BatchTaker):
    """Sessions by event time that fire by their usual trigger. State is that of rows that come one by one: they take
    up what this left, as this takes up what they did.
    """

    def __init__(self, operator: WindowOperator, assigner: SessionWindows, contents: FoldedContents) -> None:
        super().__init__(operator)
        assert operator.merging is not None, "sessions merge"
        least = operator.plan.path.least_rows
        self._least_rows = _LEAST_ROWS if least is None else least
        self._assigner = assigner
        self._contents = contents
        self._state = contents.state
        self._set = operator.merging
        self._lateness = operator.lateness
        self._one_by_one = OneByOne(operator)
        self._time = TimeBetweenRows(operator, operator.event_timers.next_timestamp)

    # -- rows

    def take(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        operator, timestamps = self.operator, batch.timestamps
        if len(batch) < self._least_rows or timestamps is None or None in timestamps:
            self._one_by_one.take(batch)
            return
        keys, identities = operator.keys_of(batch)
        ends = self._ends(batch, keys)
        if max(ends) + self._lateness >= MAX_TIMESTAMP:
            self._one_by_one.take(batch)
            return
        operator.keyed_state.expect(identities, keys)
        watermarks = self._time.watermarks(batch).tolist()
        values = chain.from_iterable(piece.values for piece in batch.pieces(ROWS_AT_ONCE))
        rows: Any = zip(range(len(batch)), keys, identities, values, timestamps, ends, watermarks, strict=True)
        while (alone := self._fold_some(rows)) is not None:
            self._time.come_to(watermarks, alone)
            operator.key_context.key, operator.key_context.identity = keys[alone], identities[alone]
            (value,) = batch.values_at([alone])
            try:
                operator.add(value, timestamps[alone])
            except BaseException as error:
                raise operator.failure(error, value, keys[alone]) from error
        self._time.come_to(watermarks, len(batch) - 1)
        operator.flush()

    def _ends(self, batch: Batch, keys: list[Any]) -> list[int]:
        """Where the rows' own windows end."""
        gap = self._assigner.fixed_gap
        if gap is not None:
            return [timestamp + gap for timestamp in batch.timestamps or ()]  # type: ignore[operator]  # none is None
        gap_of, ends = self._assigner.gap_of, list[int]()
        value = None
        try:
            for value, timestamp in zip(batch.values, batch.timestamps or (), strict=True):
                ends.append(timestamp + gap_of(value))  # type: ignore[operator]  # none is None
        except BaseException as error:
            raise self.operator.failure(error, value, keys[len(ends)]) from error
        return ends

    def _fold_some(self, rows: Rows) -> int | None:
        """Fold rows into sessions, up to the first that must go on its own: its number."""
        sessions: dict[Hashable, SessionsOfKey] = {}
        context, folded = self.operator.key_context, self._state.folded
        key = value = alone = None
        try:
            for place, key, identity, value, start, end, watermark in rows:
                context.key, context.identity = key, identity
                of_key = sessions.get(identity)
                if of_key is None:
                    of_key = sessions[identity] = self._sessions(key)
                session, past = of_key.current, watermark + 1
                if end <= past or value is None:
                    alone = place
                    break
                if (
                    session is not None
                    and session.end > past
                    and of_key.before < start <= session.end
                    and session.start <= end < of_key.after
                ):
                    if start < session.start:
                        session.start = start
                    if end > session.end:
                        session.end = end
                else:
                    session = self._session(of_key, start, end, watermark)
                    if session is None:
                        alone = place
                        break
                if not session.taken_up:
                    self._take_up(session)
                session.kept = folded(value, session.kept)
        except BaseException as error:
            raise self.operator.failure(error, value, key) from error
        for identity, of_key in sessions.items():
            self._put_back(of_key, identity)
        return alone

    def _session(self, of_key: SessionsOfKey, start: int, end: int, watermark: int) -> Session | None:
        """The session that a row goes into, having become one with the others that it touches. None where it touches
        one that fires between the rows and is kept, or that is over and was kept longer by a program before: how long,
        its timer says.
        """
        before, lateness = self.operator.watermark, self._lateness
        running, touched, ended = list[Session](), list[Session](), list[Session]()
        for session in of_key.running:
            last, touches = session.end - 1, session.touches(start, end)
            if touches and last + lateness <= before:
                return None
            if lateness and touches and (before < last <= watermark or before < last + lateness <= watermark):
                return None
            if before < last + lateness <= watermark:
                ended.append(session)
            else:
                (touched if touches else running).append(session)
        if touched:
            first, *others = sorted(touched, key=attrgetter("start"))
            for other in others:
                self._absorb(of_key, first, other)
            first.start, first.end = min(first.start, start), max(first.end, end)
        else:
            first = Session(start, end, of_key.free_holder(), None)
        of_key.ended += tuple(ended)
        of_key.run([*running, first], first)
        return first

    def _absorb(self, of_key: SessionsOfKey, session: Session, other: Session) -> None:
        for one in (session, other):
            if not one.taken_up:
                self._take_up(one)
        of_key.absorbed += (other,)
        session.end = max(session.end, other.end)
        if session.kept is None or other.kept is None:
            session.kept = other.kept if session.kept is None else session.kept
        else:
            session.kept = self._state.combined(session.kept, other.kept)

    # -- state

    def _sessions(self, key: Any) -> SessionsOfKey:
        """The sessions of the current key."""
        pairs = self._set.pairs()
        return SessionsOfKey(key, [Session(window[0], window[1], holder, window) for window, holder in pairs])

    def _take_up(self, session: Session) -> None:
        """A row of the current key comes to a session that the state has."""
        self._state.set_current_namespace(session.holder)
        session.kept = self._state.kept()
        session.taken_up = True

    def _put_back(self, of_key: SessionsOfKey, identity: Hashable) -> None:
        context, state, moved = self.operator.key_context, self._state, False
        context.key, context.identity = of_key.key, identity
        for session in of_key.absorbed:
            if session.stored is not None:
                if not self.operator.fires_once:
                    self._forget_timers(session.stored)
                state.set_current_namespace(session.holder)
                state.clear()
        sessions = [*of_key.ended, *of_key.running] if of_key.ended else of_key.running
        for session in sessions:
            if session.taken_up:
                state.set_current_namespace(session.holder)
                state.keep(session.kept)
                if session.stored != (session.start, session.end):
                    moved = True
                    self._set_timers(session)
        if moved:
            self._set.replace([((session.start, session.end), session.holder) for session in sessions])

    # -- time

    def _set_timers(self, session: Session) -> None:
        """For the end of a session that has moved. Where it fires once, the timer that it had does: when that comes
        before the session's end, it registers the next one.
        """
        stored = session.stored
        operator = self.operator
        if stored is not None and operator.fires_once and stored[1] - 1 > operator.watermark:
            return
        if stored is not None:
            self._forget_timers(stored)
        window = TimeWindow(session.start, session.end)
        for time in self._times(window):
            operator.cleanup_timers.register(time, window, unstored=stored is None)

    def _forget_timers(self, window: tuple[int, int]) -> None:
        for time in self._times(window):
            self.operator.cleanup_timers.delete(time, window)

    def _times(self, window: tuple[int, int]) -> tuple[int, ...]:
        """When a session fires, and when it goes."""
        last = window[1] - 1
        return (last, last + self._lateness) if self._lateness else (last,)

    def fire_due(self, timers: TimerQueue, to: int, domain: TimeDomain) -> None:
        operator = self.operator
        once = operator.fires_once and domain is TimeDomain.EVENT_TIME
        operator.fire_timers(timers.advance(to), domain, self._on_only_timer if once else operator.on_timer)

    def _on_only_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        """A timer of a session that fires once, of the current key."""
        operator = self.operator
        operator.cleanup_timers.gone(timestamp, namespace)
        pairs, (start, end) = self._set.pairs(), namespace
        for place, (window, holder) in enumerate(pairs):
            if window[0] <= start and end <= window[1]:
                last = window[1] - 1
                if last > timestamp:
                    # Under the window of now, so that those of sessions that became one become one as well.
                    operator.cleanup_timers.register(last, window)
                    return
                if last == timestamp:
                    self._end(operator.windows.restore(window), holder)
                    self._set.replace([*pairs[:place], *pairs[place + 1 :]])
                    return
                operator.on_timer(timestamp, namespace, domain)
                return
        # Otherwise it was of a session that is over.

    def _end(self, window: TimeWindow, holder: Any) -> None:
        """A session of the current key is over."""
        operator = self.operator
        self._state.set_current_namespace(holder)
        self._contents.fire(window, keep=False)
        self._state.clear()
        operator.function.clear(operator.context.at(window))
