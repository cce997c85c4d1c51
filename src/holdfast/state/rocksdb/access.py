"""Reads and writes of a database in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.state.rocksdb.library import load_engine
from holdfast.state.rocksdb.pending_changes import Entry


def apply(database: Any, entries: Sequence[Entry], options: Any = None) -> None:
    """Put and delete in one batch."""
    batch = load_engine().WriteBatch(raw_mode=True)
    put, delete = batch.put, batch.delete
    for key, value in entries:
        if value is None:
            delete(key)
        else:
            put(key, value)
    database.write(batch, options)


def delete_range(database: Any, start: bytes, end: bytes, options: Any = None) -> None:
    """Delete all keys in [start, end), without a look at them."""
    batch = load_engine().WriteBatch(raw_mode=True)
    batch.delete_range(start, end)
    database.write(batch, options)


def unlogged() -> Any:
    """Options of writes that a flush follows before anybody counts on them."""
    options = load_engine().WriteOptions()
    options.disable_wal = True
    return options


def rows(database: Any, start: bytes, end: bytes, readahead: int = 0) -> Iterator[tuple[bytes, bytes]]:
    """The rows of [start, end). Unlike RocksDB's own iterator over items, this one does not take a damaged file for its
    end.
    """
    bounds = load_engine().ReadOptions()
    bounds.set_iterate_upper_bound(end)
    bounds.set_readahead_size(readahead)
    found = database.iter(bounds)
    found.seek(start)
    valid, key, value, following = found.valid, found.key, found.value, found.next
    while valid():
        yield key(), value()
        following()
    found.status()


def keys_down(database: Any, start: bytes, end: bytes) -> Iterator[bytes]:
    """The keys of [start, end), the greatest first."""
    found = database.iter()
    found.seek_for_prev(end)
    while found.valid():
        key: bytes = found.key()
        if key < start:
            return
        if key < end:
            yield key
        found.prev()
    found.status()
