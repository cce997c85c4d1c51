"""Timers of windows: the window is their namespace."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from holdfast.runtime.windowing.serializers import WindowSerializer
from holdfast.state.key_table import KeyContext
from holdfast.state.timers import TimerQueue

#: Timers that are remembered; beyond it they are all forgotten, and registered again.
_REMEMBERED = 500_000


class WindowTimers:
    """The timers of one domain. Every row registers those of its windows: one that is known to be there costs the look
    into a set.
    """

    def __init__(self, queue: TimerQueue, keys: KeyContext, windows: WindowSerializer) -> None:
        self._queue = queue
        self._keys = keys
        self._namespace = windows.namespace
        self._known: set[tuple[int, Any, Any]] = set()
        #: The timer that was deleted or fired last: an operator and its trigger delete the same one.
        self._gone: tuple[int, Any, Any] | None = None

    def register(self, time: int, window: Any, unstored: bool = False) -> None:
        """``unstored``: the current key surely never had a timer for the window."""
        keys, known = self._keys, self._known
        timer = (time, keys.identity, window)
        if timer in known:
            return
        if len(known) >= _REMEMBERED:
            known.clear()
        known.add(timer)
        self._gone = None
        self._queue.register(time, keys.key, self._namespace(window), unstored)

    def register_many(
        self, time: int, window: Any, keys: dict[Hashable, Any], is_new: Callable[[Hashable], bool]
    ) -> None:
        """One timer of each of several keys, by identity. ``is_new``: the key had none at this time for the window."""
        known = self._known
        if len(known) + len(keys) > _REMEMBERED:
            known.clear()
        self._gone = None
        timers = {(time, identity, window): identity for identity in keys}
        fresh = [identity for timer, identity in timers.items() if timer not in known]
        if fresh:
            known.update(timers)
            added = {identity: keys[identity] for identity in fresh}
            self._queue.register_many(time, added, self._namespace(window), filter(is_new, fresh))

    def has(self, time: int, window: Any) -> bool:
        """Whether the current key has a timer for the window."""
        known = (time, self._keys.identity, window) in self._known
        return known or self._queue.has(time, self._keys.key, self._namespace(window))

    def may_have(self, time: int, window: Any) -> bool:
        """Whether any key may have a timer for the window."""
        return self._queue.may_have(time, self._namespace(window))

    def next_timestamp(self) -> int | None:
        """The time of the first timer of all keys and windows."""
        return self._queue.next_timestamp()

    def delete(self, time: int, window: Any) -> None:
        if (time, self._keys.identity, window) != self._gone:
            self.gone(time, window)
            self._queue.delete(time, self._keys.key, self._namespace(window))

    def gone(self, time: int, window: Any) -> None:
        """A timer of the current key fires: it is no longer there."""
        self._gone = (time, self._keys.identity, window)
        self._known.discard(self._gone)

    def gone_many(self, time: int, window: Any, identities: Sequence[Hashable]) -> None:
        """Timers of several keys fire."""
        self._known.difference_update([(time, identity, window) for identity in identities])
