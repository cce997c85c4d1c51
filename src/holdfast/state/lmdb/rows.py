"""Rows of an LMDB store in key order, as one transaction sees them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from itertools import islice
from operator import itemgetter
from typing import Any

from holdfast.state.lmdb import long_keys
from holdfast.state.lmdb.long_keys import GROUP, Entry

#: Rows that a scan reads at a time; between two reads the store may be written behind them. Most scans are short, over
#: one list or map, so the first read is.
_FIRST_ROWS, _SCAN_ROWS = 16, 512
_key_of = itemgetter(0)


def scan(txn: Any, start: bytes, end: bytes) -> Iterator[Entry]:
    """Entries of [start, end), with their full keys and in the order of these."""
    seek: bytes | None = start[:GROUP]
    count = _FIRST_ROWS
    while seek is not None:
        rows = _rows(txn, seek, count)
        seek = rows[-1][0] + b"\0" if len(rows) >= count else None
        count = min(4 * count, _SCAN_ROWS)
        entries = long_keys.in_key_order(rows)
        if entries and entries[0][0] < start:
            entries = entries[bisect_left(entries, start, key=_key_of) :]
        if entries and entries[-1][0] >= end:
            yield from entries[: bisect_left(entries, end, key=_key_of)]
            return
        yield from entries


def _rows(txn: Any, seek: bytes, count: int) -> list[Entry]:
    """Stored rows from ``seek`` on, about ``count``, never half a group of long keys."""
    cursor = txn.cursor()
    if not cursor.set_range(seek):
        return []
    following = cursor.iternext()
    rows: list[Entry] = list(islice(following, count))
    if len(rows) == count and len(rows[-1][0]) >= GROUP:
        group = rows[-1][0][:GROUP]
        for row in following:
            if row[0][:GROUP] != group:
                break
            rows.append(row)
    return rows
