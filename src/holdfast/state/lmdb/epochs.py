"""The epoch records of an LMDB store, in pieces.

A record may have megabytes, and LMDB looks for as many adjacent free pages for one value: pieces that fit a page
avoid that search, and the growth of the file when it fails.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

import lmdb

_KEY = struct.Struct(">QI")
_EPOCH = struct.Struct(">Q")
#: Two pieces with their keys and headers fill one page of 4096 bytes.
_PIECE = 1980


class EpochTable:
    """The records as one transaction sees them."""

    def __init__(self, txn: lmdb.Transaction, database: lmdb._Database) -> None:
        self._txn = txn
        self._database = database

    def put(self, epoch: int, record: bytes) -> None:
        """Add the record of an epoch that is newer than all others."""
        starts = range(0, len(record), _PIECE)
        pieces = [(_KEY.pack(epoch, part), record[at : at + _PIECE]) for part, at in enumerate(starts)]
        self._txn.cursor(self._database).putmulti(pieces, append=True)

    def get(self, epoch: int) -> bytes | None:
        """The record of one epoch."""
        for found, record in self._records(epoch):
            return record if found == epoch else None
        return None

    def newer_than(self, epoch: int) -> Iterator[bytes]:
        """The records of later epochs, oldest first."""
        for _, record in self._records(epoch + 1):
            yield record

    def oldest(self) -> int | None:
        cursor = self._txn.cursor(self._database)
        return _epoch(cursor) if cursor.first() else None

    def newest(self) -> int | None:
        cursor = self._txn.cursor(self._database)
        return _epoch(cursor) if cursor.last() else None

    def drop(self, epoch: int) -> None:
        """Delete the record of one epoch."""
        cursor = self._txn.cursor(self._database)
        while cursor.set_range(_EPOCH.pack(epoch)) and _epoch(cursor) == epoch:
            cursor.delete()

    def drop_until(self, epoch: int) -> None:
        """Delete the records of epochs up to ``epoch``; the newest one stays, it is the undo of the last commit."""
        newest = self.newest()
        oldest = self.oldest()
        while oldest is not None and oldest <= epoch and oldest != newest:
            self.drop(oldest)
            oldest = self.oldest()

    def trim(self, limit: int) -> None:
        """Delete the oldest records while all of them take more than ``limit`` bytes; the newest one stays."""
        while self.size_of(self._database) > limit:
            oldest = self.oldest()
            if oldest is None or oldest == self.newest():
                return
            self.drop(oldest)

    def size_of(self, database: lmdb._Database) -> int:
        """Bytes of the pages in use."""
        stat = self._txn.stat(database)
        pages: int = stat["leaf_pages"] + stat["branch_pages"] + stat["overflow_pages"]
        return pages * int(stat["psize"])

    def _records(self, first: int) -> Iterator[tuple[int, bytes]]:
        cursor = self._txn.cursor(self._database)
        if not cursor.set_range(_EPOCH.pack(first)):
            return
        epoch, pieces = -1, list[bytes]()
        rows: Any = cursor.iternext()
        for key, piece in rows:
            found, part = _KEY.unpack(key)
            if part == 0 and pieces:
                yield epoch, b"".join(pieces)
                pieces = []
            epoch = found
            pieces.append(piece)
        if pieces:
            yield epoch, b"".join(pieces)


def _epoch(cursor: lmdb.Cursor) -> int:
    epoch: int = _EPOCH.unpack_from(cursor.key())[0]
    return epoch
