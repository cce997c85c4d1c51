"""What a transaction has changed and not yet applied to the database."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.state.rocksdb.images import LocalImage

Entry = tuple[bytes, bytes | None]

#: Bytes that an entry takes in the dictionaries besides key and values.
_OVERHEAD = 200


class RunningEpoch:
    """``pending``: new values, None for deleted keys. ``before``: the values that keys had, as far as no piece of the
    epoch's record holds them. ``inserts``: some pending key is not in the database, so its order is known to nobody.
    """

    __slots__ = ("before", "images", "inserts", "pending", "pieces", "ranges", "size")

    def __init__(self) -> None:
        self.pending: dict[bytes, bytes | None] = {}
        self.before: dict[bytes, bytes | None] = {}
        self.ranges: list[tuple[bytes, bytes]] = []
        self.inserts = False
        #: Pieces of the record that are written, and may be applied.
        self.pieces = 0
        self.size = 0
        #: What was pinned of the epoch, to be kept if it is committed.
        self.images: list[LocalImage] = []

    def add(self, changes: list[Entry], present: dict[bytes, bytes | None]) -> int:
        """Take changes; ``present`` has the values until now. By how many bytes the values grow."""
        previous = [present[key] for key, _ in changes]
        before = self.before
        if before:
            before.update([(key, old) for (key, _), old in zip(changes, previous, strict=True) if key not in before])
        else:
            before.update(zip((key for key, _ in changes), previous, strict=True))
        self.inserts = self.inserts or None in previous
        self.pending.update(changes)
        removed = sum([len(old) for old in previous if old])
        added = sum([len(value) for _, value in changes if value])
        self.size += added + removed + sum([len(key) for key, _ in changes]) + len(changes) * _OVERHEAD
        return added - removed

    def applied(self) -> None:
        """Everything pending is in the database now, and a piece of the record has the values before."""
        self.pending = {}
        self.before = {}
        self.inserts = False
        self.size = 0


def size_of(entries: Iterable[Entry]) -> int:
    """About how many bytes of memory entries take."""
    return sum([len(key) + (len(value) if value else 0) + _OVERHEAD for key, value in entries])
