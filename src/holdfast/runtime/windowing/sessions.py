"""Sessions with an aggregate or a reduced row, a batch at a time.

A row by itself costs the loop a merge: its window is added to those of its key and made one with the session that goes
on. Here the sessions of a batch's keys are taken out of the state once, rows are folded into them one after the other,
and what became of them is put back once. It is what the loop gives, because no two keys know of each other, and for a
key everything happens in the order of its rows: a session that event time has passed at a row's turn is left as it is,
and fires afterwards. Rows that are or may be late take the loop, each at its turn.

Where a session fires once, its timer stays when it goes on, and is early then: when it fires it registers the next one.

The loop keeps the contents of a session under its first window. Here they are under one of a few namespaces that no
window has, the same for all keys: caches are by namespace, and one for each session would cost more than the session.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import chain, count
from operator import attrgetter
from typing import Any

from holdfast.runtime.batch import Batch
from holdfast.runtime.keyed import ROWS_AT_ONCE
from holdfast.runtime.operator import MIN_WATERMARK
from holdfast.runtime.plan import OperatorSpec
from holdfast.runtime.windowing.rows_first import RowsFirstOperator
from holdfast.runtime.windowing.session_windows import SessionWindows
from holdfast.runtime.windowing.windows import MAX_TIMESTAMP, TimeWindow
from holdfast.state.timers import TimeDomain

#: A batch of fewer rows is as fast in the loop.
LEAST_ROWS = 8
#: The namespace of contents that most sessions have: no window ends before it starts.
_FIRST_HOLDER = (0, -1)

#: The number of a row, its key, the key's identity, the row, the start and the end of its window, and the watermark.
Rows = Iterator[tuple[int, Any, Hashable, Any, int, int, int]]


class Session:
    """A window of a key, and what is kept of its rows."""

    __slots__ = ("end", "holder", "kept", "start", "stored", "taken_up")

    def __init__(self, start: int, end: int, holder: tuple[int, int], stored: tuple[int, int] | None) -> None:
        self.start = start
        self.end = end
        #: The namespace of what is kept.
        self.holder = holder
        #: The window under which the state has it; None for one that is new.
        self.stored = stored
        #: Whether a row came to it, and ``kept`` is here: until then it is only in the state.
        self.taken_up = stored is None
        self.kept: Any = None

    def touches(self, start: int, end: int) -> bool:
        return self.start <= end and self.end >= start


class SessionsOfKey:
    """The sessions of a key while rows are folded into them."""

    __slots__ = ("absorbed", "after", "before", "current", "ended", "key", "running")

    def __init__(self, key: Any, running: list[Session]) -> None:
        self.key = key
        #: Sessions that event time has passed since, and sessions that became part of others.
        self.ended: tuple[Session, ...] = ()
        self.absorbed: tuple[Session, ...] = ()
        self.run(running, running[-1] if running else None)

    def run(self, running: list[Session], current: Session | None) -> None:
        """These are the ones that rows may go into: no two of them touch each other. ``current`` had the last row, and
        is likely to have the next.
        """
        self.running = running
        self.current = current
        #: Where the session before the current one ends, and where the one after it starts.
        self.before, self.after = MIN_WATERMARK, MAX_TIMESTAMP
        if current is not None and len(running) > 1:
            self.before = max([one.end for one in running if one.end < current.start], default=MIN_WATERMARK)
            self.after = min([one.start for one in running if one.start > current.end], default=MAX_TIMESTAMP)

    def free_holder(self) -> tuple[int, int]:
        """A namespace that none of the sessions has."""
        if not (self.running or self.ended or self.absorbed):
            return _FIRST_HOLDER
        taken = {session.holder for session in (*self.running, *self.ended, *self.absorbed)}
        return next(holder for number in count() if (holder := (number, -1)) not in taken)


class SessionOperator(RowsFirstOperator):
    """Sessions by event time that fire by their usual trigger. State is that of the loop: it takes up what this left,
    as this takes up what the loop did.
    """

    def __init__(self, spec: OperatorSpec) -> None:
        super().__init__(spec)
        self._assigner: SessionWindows = self.plan.assigner  # type: ignore[assignment]  # no other comes here

    def bind_state(self) -> None:
        super().bind_state()
        assert self._merging is not None, "sessions merge"
        self._set = self._merging

    # -- rows

    def _process_together(self, batch: Batch, ahead: int = MIN_WATERMARK) -> None:
        timestamps = batch.timestamps
        if len(batch) < LEAST_ROWS or timestamps is None or None in timestamps:
            self._process_one_by_one(batch)
            return
        keys, identities = self.keys_of(batch)
        ends = self._ends(batch, keys)
        if max(ends) + self._lateness >= MAX_TIMESTAMP:
            self._process_one_by_one(batch)
            return
        self.keyed_state.expect(identities, keys)
        watermarks = self._watermarks(batch).tolist()
        values = chain.from_iterable(piece.values for piece in batch.pieces(ROWS_AT_ONCE))
        rows: Any = zip(range(len(batch)), keys, identities, values, timestamps, ends, watermarks, strict=True)
        while (alone := self._fold_some(rows)) is not None:
            self._come_to(watermarks, alone)
            self.key_context.key, self.key_context.identity = keys[alone], identities[alone]
            (value,) = batch.values_at([alone])
            try:
                self._add(value, timestamps[alone])
            except BaseException as error:
                raise self.failure(error, value, keys[alone]) from error
        self._come_to(watermarks, len(batch) - 1)
        self._flush()

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
            raise self.failure(error, value, keys[len(ends)]) from error
        return ends

    def _fold_some(self, rows: Rows) -> int | None:
        """Fold rows into sessions, up to the first that must take the loop: its number."""
        sessions: dict[Hashable, SessionsOfKey] = {}
        context, folded = self.key_context, self._contents.folded
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
            raise self.failure(error, value, key) from error
        for identity, of_key in sessions.items():
            self._put_back(of_key, identity)
        return alone

    def _session(self, of_key: SessionsOfKey, start: int, end: int, watermark: int) -> Session | None:
        """The session that a row goes into, having become one with the others that it touches. None where it touches
        one that fires between the rows and is kept, or that is over and was kept longer by a program before: how long,
        its timer says.
        """
        before, lateness = self.watermark, self._lateness
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
            session.kept = self._contents.combined(session.kept, other.kept)

    # -- state

    def _sessions(self, key: Any) -> SessionsOfKey:
        """The sessions of the current key."""
        pairs = self._set.pairs()
        return SessionsOfKey(key, [Session(window[0], window[1], holder, window) for window, holder in pairs])

    def _take_up(self, session: Session) -> None:
        """A row of the current key comes to a session that the state has."""
        self._contents.set_current_namespace(session.holder)
        session.kept = self._contents.kept()
        session.taken_up = True

    def _put_back(self, of_key: SessionsOfKey, identity: Hashable) -> None:
        self.key_context.key, self.key_context.identity = of_key.key, identity
        contents, moved = self._contents, False
        for session in of_key.absorbed:
            if session.stored is not None:
                if not self._fires_once:
                    self._forget_timers(session.stored)
                contents.set_current_namespace(session.holder)
                contents.clear()
        sessions = [*of_key.ended, *of_key.running] if of_key.ended else of_key.running
        for session in sessions:
            if session.taken_up:
                contents.set_current_namespace(session.holder)
                contents.keep(session.kept)
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
        if stored is not None and self._fires_once and stored[1] - 1 > self.watermark:
            return
        if stored is not None:
            self._forget_timers(stored)
        window = TimeWindow(session.start, session.end)
        for time in self._times(window):
            self._cleanup_timers.register(time, window, unstored=stored is None)

    def _forget_timers(self, window: tuple[int, int]) -> None:
        for time in self._times(window):
            self._cleanup_timers.delete(time, window)

    def _times(self, window: tuple[int, int]) -> tuple[int, ...]:
        """When a session fires, and when it goes."""
        last = window[1] - 1
        return (last, last + self._lateness) if self._lateness else (last,)

    def on_timer(self, timestamp: int, namespace: Any, domain: TimeDomain) -> None:
        if not self._fires_once or domain is not TimeDomain.EVENT_TIME:
            super().on_timer(timestamp, namespace, domain)
            return
        self._cleanup_timers.gone(timestamp, namespace)
        pairs, (start, end) = self._set.pairs(), namespace
        for place, (window, holder) in enumerate(pairs):
            if window[0] <= start and end <= window[1]:
                last = window[1] - 1
                if last > timestamp:
                    # Under the window of now, so that those of sessions that became one become one as well.
                    self._cleanup_timers.register(last, window)
                    return
                if last == timestamp:
                    self._end(self.windows.restore(window), holder)
                    self._set.replace([*pairs[:place], *pairs[place + 1 :]])
                    return
                super().on_timer(timestamp, namespace, domain)
                return
        # Otherwise it was of a session that is over.

    def _end(self, window: TimeWindow, holder: Any) -> None:
        """A session of the current key is over."""
        self._contents.set_current_namespace(holder)
        self.fire(window, keep=False)
        self._contents.clear()
        self.plan.function.clear(self._context.at(window))
