"""Which transactions of a sink were published. Pure: no other system is asked.

Whoever publishes staged rows also writes a marker, under the key of (job, operator), in the same transaction of the
system that gets the rows. The newest marker of a key is all that counts.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import xxhash

from holdfast.connectors.staging import StagedRows
from holdfast.errors import TransactionError
from holdfast.runtime.sink import TransactionName

#: A name can be asked for while its file may still be staged: after a crash behind the last transaction. A few more
#: than that one are kept, unless they are large.
_KEPT_TRANSACTIONS = 8
_KEPT_NAMES = 20_000
#: A transaction must not have more names, so that its marker is a message of moderate size.
MOST_NAMES = 10_000
#: Attempts of which is kept how far they were published.
_KEPT_ATTEMPTS = 256


class Marker(msgspec.Struct, frozen=True):
    """What was published of one operator of one job."""

    #: Digests of the names of the last transactions, one list for each, oldest first.
    recent: list[list[bytes]] = []
    #: The epoch up to which each attempt's rows were published.
    through: dict[int, int] = {}
    version: int = 1

    def has(self, name: TransactionName) -> bool:
        """Whether it is one of the last that were published. Certain, either way, for one whose file is staged: that
        is deleted before the next transaction begins."""
        digest = _digest(name)
        return any(digest in digests for digests in self.recent)

    def covers(self, name: TransactionName) -> bool:
        """Whether it was published some time ago. To be asked of one whose file is no longer staged: an attempt's
        epochs are published in their order."""
        return name.epoch <= self.through.get(name.attempt, -1)

    def after(self, names: Iterable[TransactionName]) -> Marker:
        """The marker of a transaction that publishes these."""
        published = list(names)
        highest: dict[int, int] = {}
        for name in published:
            highest[name.attempt] = max(name.epoch, highest.get(name.attempt, -1))
        # An attempt of the same number that had come further was one of an earlier life of the job, whose directory
        # was deleted since: what it did says nothing about this one.
        through = self.through | highest
        kept = dict(sorted(through.items())[-_KEPT_ATTEMPTS:])
        recent = [*self.recent, [_digest(name) for name in published]][-_KEPT_TRANSACTIONS:]
        while len(recent) > 1 and sum(map(len, recent)) > _KEPT_NAMES:
            recent.pop(0)
        return Marker(recent, kept)

    def encode(self) -> bytes:
        return msgspec.msgpack.encode(self)

    @staticmethod
    def decode(data: bytes) -> Marker:
        return msgspec.msgpack.decode(data, type=Marker)


def _digest(name: TransactionName) -> bytes:
    return xxhash.xxh3_128_digest(msgspec.msgpack.encode(name))


def due(handles: Iterable[StagedRows], marker: Marker, place: str) -> list[StagedRows]:
    """Rows that are to be published now. ``place`` is where the marker was found; it must be the newest one, and
    nobody else may be about to write another."""
    return [handle for handle in handles if _is_due(handle, marker, place)]


def _is_due(handle: StagedRows, marker: Marker, place: str) -> bool:
    if marker.has(handle.name):
        handle.delete()
        return False
    if handle.is_there():
        return True
    if marker.covers(handle.name):
        return False
    raise TransactionError(
        f"The rows of {handle.name} are lost: {handle.root} does not have them, and {place} does not say that they "
        "were published. Restore an earlier checkpoint."
    )
