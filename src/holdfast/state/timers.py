"""Timers per key: kept in keyed state, fired in time order over all key groups.

A timer is stored twice: as an entry of its key group (``head | time``, in snapshots like any state) and in a local
index ordered by time (``LOCAL_PREFIX | id | time | key group | sized key | sized namespace``), which a restore
builds anew. The next due timer is the first entry of the index; the others are not read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum
from heapq import heappop, heappush
from itertools import islice
from typing import Any, NamedTuple

from holdfast.errors import StateAccessError
from holdfast.state.handles import StateMeta
from holdfast.state.keyed_state import VOID, Pending, StateAccess, namespace_bytes, read_namespace
from holdfast.state.keys import KeyCodec
from holdfast.state.layout import HEAD_LENGTH, id_bytes, prefix_end, read_sized, read_time, time_bytes
from holdfast.state.store import LOCAL_PREFIX

_TIME = slice(HEAD_LENGTH, HEAD_LENGTH + 8)
_GROUP = slice(HEAD_LENGTH + 8, HEAD_LENGTH + 10)
_KEY_AT = HEAD_LENGTH + 10
#: Index entries that are read at a time.
_READ_AHEAD = 256
#: Index entries that are looked at to find none of a namespace: some rows may be far ahead of all others.
_FEW = 32
#: Encoded namespaces that are remembered.
_ENCODED = 16384


class TimeDomain(Enum):
    """The clock of a timer."""

    EVENT_TIME = 0
    PROCESSING_TIME = 1


class Timer(NamedTuple):
    """A timer that fires; (timestamp, key, namespace) is its identity within its queue."""

    timestamp: int
    key: Any
    namespace: Any


def index_entry(stored: bytes) -> bytes:
    """The index entry of a timer's state entry."""
    at = len(stored) - 8
    return LOCAL_PREFIX + stored[2:HEAD_LENGTH] + stored[at:] + stored[:2] + stored[HEAD_LENGTH:at]


def state_entry(index: bytes) -> bytes:
    """The inverse of ``index_entry``."""
    return index[_GROUP] + index[2:HEAD_LENGTH] + index[_KEY_AT:] + index[_TIME]


class TimerQueue:
    """The timers of one name and domain. Changes of an epoch stay in memory until a flush."""

    def __init__(self, access: StateAccess, meta: StateMeta, namespaces: KeyCodec | None) -> None:
        self.name = meta.name
        self._access = access
        self._namespaces = namespaces
        self._start = LOCAL_PREFIX + id_bytes(meta.state_id)
        self._end = prefix_end(self._start)
        #: Index entries that are not stored yet, with key and namespace; ``_order`` is a heap of them.
        self._added: dict[bytes, tuple[Any, Any]] = {}
        self._order: list[bytes] = []
        #: How the last in order of those begins that were added since the last flush.
        self._latest = b""
        #: Index entries of which the store is known to have nothing.
        self._unstored: set[bytes] = set()
        #: Index entries that may be stored and no longer count.
        self._removed: set[bytes] = set()
        #: Namespaces as they stand in entries.
        self._encoded: dict[Hashable, bytes] = {}
        self._rewind()

    def register(self, timestamp: int, key: Any, namespace: Any = None, unstored: bool = False) -> None:
        """Add a timer; nothing happens when it exists. ``unstored``: it was surely never there before."""
        entry = self._entry(timestamp, key, namespace)
        if entry in self._added:
            return
        self._access.make_room()
        self._removed.discard(entry)
        self._added[entry] = (key, namespace)
        self._latest = max(self._latest, entry[: _TIME.stop])
        heappush(self._order, entry)
        if unstored:
            self._unstored.add(entry)

    def register_many(
        self, timestamp: int, keys: dict[Hashable, Any], namespace: Any, unstored: Iterable[Hashable]
    ) -> None:
        """Add a timer of each of several keys, by identity. Whoever registers them may know that those of some keys,
        ``unstored``, were never there before: when they fire, nothing has to be removed.
        """
        start, end = self._start + time_bytes(timestamp), self._namespace_bytes(namespace)
        # To make room may empty the table of keys: not while their parts are looked up.
        self._access.make_room(len(keys))
        parts = zip(keys, self._access.keys.many(keys), strict=True)
        entries = {identity: start + group + sized_key + end for identity, (group, sized_key) in parts}
        self._removed.difference_update(entries.values())
        for identity, entry in entries.items():
            if entry not in self._added:
                self._added[entry] = (keys[identity], namespace)
                heappush(self._order, entry)
        self._latest = max(self._latest, start)
        self._unstored.update(map(entries.__getitem__, unstored))

    def has(self, timestamp: int, key: Any, namespace: Any = None) -> bool:
        """Whether there is such a timer."""
        entry = self._entry(timestamp, key, namespace)
        return entry in self._added or (entry not in self._removed and self._access.store.get(entry) is not None)

    def may_have(self, timestamp: int, namespace: Any) -> bool:
        """False if surely no timer of any key is of this namespace and at this time or later, nor of another namespace
        and at this time. Looks at few timers, and does not know where there are more.
        """
        start, ending = self._start + time_bytes(timestamp), self._namespace_bytes(namespace)
        if self._latest >= start:
            return True
        later = [entry for entry, _ in islice(self._access.store.scan(start, self._end), _FEW)]
        return len(later) == _FEW or any(entry.startswith(start) or entry.endswith(ending) for entry in later)

    def delete(self, timestamp: int, key: Any, namespace: Any = None) -> None:
        """Remove a timer; nothing happens when it does not exist."""
        entry = self._entry(timestamp, key, namespace)
        # Sessions move their timers with every row: what was never stored need not be deleted there.
        self._unstored.discard(entry)
        if self._added.pop(entry, None) is None or self._access.store.get(entry) is not None:
            self._removed.add(entry)

    def next_timestamp(self) -> int | None:
        """The time of the earliest timer."""
        first = self._first()
        return None if first is None else read_time(first[_TIME])

    def count(self) -> int:
        """How many timers there are. Reads the whole index: for tests and statistics."""
        stored = (key for key, _ in self._access.store.scan(self._start, self._end))
        return len(self._added) + sum(1 for key in stored if key not in self._removed and key not in self._added)

    def advance(self, to: int) -> Iterator[Timer]:
        """Timers up to ``to``, in time order, each removed before it is given out.

        Timers that are registered meanwhile and are due by then come in the same pass.
        """
        due = time_bytes(to)
        while (first := self._first()) is not None and first[_TIME] <= due:
            yield self._take(first)

    def advance_together(self, to: int, most: int) -> Iterator[tuple[int, list[tuple[Any, Any]]]]:
        """Timers up to ``to``, for whoever neither registers nor deletes timers of the time that fires: each time with
        the keys and namespaces of its timers, at most so many at once.
        """
        due = time_bytes(to)
        while (first := self._first()) is not None and first[_TIME] <= due:
            yield read_time(first[_TIME]), self._take_together(first[: _TIME.stop], most)

    def collect(self, pending: Pending) -> None:
        """Hand over what changed. It may happen while timers fire: they go on from what is stored then."""
        for entry in self._removed:
            pending.writes += ((entry, None), (state_entry(entry), None))
        for entry in self._added:
            pending.writes += ((entry, b""), (state_entry(entry), b""))
        self._added.clear()
        self._latest = b""
        self._unstored.clear()
        self._order.clear()
        self._removed.clear()
        self._rewind()

    def _rewind(self) -> None:
        """Read the index from its beginning next time."""
        self._ahead: deque[bytes] = deque()
        self._position: bytes | None = self._start

    def _entry(self, timestamp: int, key: Any, namespace: Any) -> bytes:
        group, sized_key = self._access.keys.parts_of(key)
        return self._start + time_bytes(timestamp) + group + sized_key + self._namespace_bytes(namespace)

    def _namespace_bytes(self, namespace: Any) -> bytes:
        if namespace is None:
            return VOID
        if self._namespaces is None:
            raise StateAccessError(
                f"The timers '{self.name}' of operator '{self._access.operator_name}' were registered without a type "
                f"of namespaces; give one to use them."
            )
        identity = self._namespaces.identity(namespace)
        known = self._encoded.get(identity)
        if known is None:
            if len(self._encoded) >= _ENCODED:
                self._encoded.clear()
            known = self._encoded[identity] = namespace_bytes(self._namespaces, namespace)
        return known

    def _first(self) -> bytes | None:
        while self._order and self._order[0] not in self._added:
            heappop(self._order)
        stored = self._first_stored()
        if not self._order:
            return stored
        return self._order[0] if stored is None else min(stored, self._order[0])

    def _first_stored(self) -> bytes | None:
        while True:
            while self._ahead and self._ahead[0] in self._removed:
                self._ahead.popleft()
            if self._ahead:
                return self._ahead[0]
            if self._position is None:
                return None
            found = [key for key, _ in islice(self._access.store.scan(self._position, self._end), _READ_AHEAD)]
            self._ahead.extend(found)
            self._position = found[-1] + b"\0" if len(found) == _READ_AHEAD else None

    def _take_together(self, at_time: bytes, most: int) -> list[tuple[Any, Any]]:
        """Keys and namespaces of the next timers of a time."""
        stored: list[bytes] = []
        while len(stored) < most and (first := self._first_stored()) is not None and first.startswith(at_time):
            stored.append(self._ahead.popleft())
        added: list[bytes] = []
        while len(added) < most and self._order and self._order[0].startswith(at_time):
            entry = heappop(self._order)
            # One that was deleted and registered again is there twice.
            if entry in self._added and entry not in added[-1:]:
                added.append(entry)
        entries = sorted({*stored, *added})[:most] if stored else added
        # Each of the two may have some that come behind the last.
        while stored and stored[-1] > entries[-1]:
            self._ahead.appendleft(stored.pop())
        while added and added[-1] > entries[-1]:
            heappush(self._order, added.pop())
        timers = self._read_together([entry for entry in stored if entry not in self._added])
        timers |= {entry: self._added.pop(entry) for entry in added}
        # Whoever registered it may have been wrong: then it was read.
        unstored = self._unstored.intersection(added).difference(stored)
        self._unstored.difference_update(added)
        self._access.room += len(unstored)
        self._removed.update(timers.keys() - unstored)
        return [timers[entry] for entry in entries]

    def _read_together(self, entries: list[bytes]) -> dict[bytes, tuple[Any, Any]]:
        """Keys and namespaces of stored timers of one time: of its namespaces there are few."""
        decode, namespaces = self._access.keys.codec.decode, dict[bytes, Any]()
        timers: dict[bytes, tuple[Any, Any]] = {}
        for entry in entries:
            key, offset = read_sized(entry, _KEY_AT)
            rest = entry[offset:]
            if rest not in namespaces:
                namespaces[rest] = read_namespace(self._namespaces, read_sized(rest, 0)[0])
            timers[entry] = (decode(key), namespaces[rest])
        return timers

    def _take(self, entry: bytes) -> Timer:
        stored = bool(self._ahead) and self._ahead[0] == entry
        if stored:
            self._ahead.popleft()
        known = self._added.pop(entry, None)
        if entry in self._unstored and not stored:
            self._access.room += 1
        else:
            # Also when it was registered in this epoch: a stored one of the same identity may have been read past.
            self._removed.add(entry)
        self._unstored.discard(entry)
        if known is not None:
            return Timer(read_time(entry[_TIME]), *known)
        key, offset = read_sized(entry, _KEY_AT)
        namespace, _ = read_sized(entry, offset)
        decoded = self._access.keys.codec.decode(key)
        return Timer(read_time(entry[_TIME]), decoded, read_namespace(self._namespaces, namespace))
