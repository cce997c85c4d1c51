"""Keyed snapshots back into a local store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge as merge_sorted
from itertools import chain, islice

from holdfast.state import registry
from holdfast.state.epoch_log import RangeSet, changed_keys
from holdfast.state.handles import KeyedFile, KeyedSnapshot, SnapshotKind
from holdfast.state.keyed_file import Entry, KeyedFileReader
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import HEAD_LENGTH, REGISTRY_KEY, id_bytes, read_id
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import LocalStore, Stamp
from holdfast.state.timers import index_entry

_BATCH = 4096


def restore_into(
    store: LocalStore,
    snapshots: Iterable[KeyedSnapshot],
    key_groups: KeyGroupRange,
    reader: SnapshotReader,
    stamp: Stamp,
) -> int:
    """Make ``key_groups`` of the snapshots the content of ``store``, at ``stamp``; the bytes that were read.

    The snapshots are those of all old subtasks, or of those that had one of the key groups. Only blocks with these
    key groups are read. Subtasks that gave the same state different ids are brought together, and the index of
    timers is built anew. Without snapshots the store is empty.
    """
    wanted = [one for one in snapshots if _range_of(one).intersects(key_groups)]
    wanted.sort(key=lambda snapshot: snapshot.first_key_group)
    merged, id_changes = registry.merge(wanted)
    timer_ids = {meta.state_id for meta in merged.states() if meta.kind == registry.TIMERS}
    readers: list[KeyedFileReader] = []
    entries = chain.from_iterable(
        _renamed(_entries_of(snapshot, key_groups, reader, readers), changes)
        for snapshot, changes in zip(wanted, id_changes, strict=True)
    )
    known = [[(REGISTRY_KEY, merged.encode())]] if wanted else []
    store.load(chain(known, _batches(entries, timer_ids)), stamp)
    return sum(one.bytes_read for one in readers)


def _range_of(file: KeyedSnapshot | KeyedFile) -> KeyGroupRange:
    return KeyGroupRange(file.first_key_group, file.last_key_group)


def _entries_of(
    snapshot: KeyedSnapshot, key_groups: KeyGroupRange, reader: SnapshotReader, opened: list[KeyedFileReader]
) -> Iterator[tuple[bytes, bytes]]:
    """What the files of one snapshot make up, in key order."""
    starts = [number for number, file in enumerate(snapshot.files) if file.kind is SnapshotKind.FULL]
    files = snapshot.files[starts[-1] if starts else 0 :]
    readers = [KeyedFileReader(file.handle, reader) for file in files if _range_of(file).intersects(key_groups)]
    opened += readers
    streams = [chain.from_iterable(one.batches(key_groups)) for one in readers]
    if len(readers) == 1:
        return ((key, value) for key, value in streams[0] if value is not None)
    return _applied(streams, [one.ranges for one in readers])


def _applied(
    streams: Sequence[Iterable[Entry]], ranges: Sequence[list[tuple[bytes, bytes]]]
) -> Iterator[tuple[bytes, bytes]]:
    """Files applied in order: of every key the newest entry, unless it, or a range of a newer file, is a tombstone."""
    hidden = [
        RangeSet(changed_keys(chain.from_iterable(ranges[number + 1 :]), ()).ranges) for number in range(len(ranges))
    ]

    def tagged(number: int, stream: Iterable[Entry]) -> Iterator[tuple[bytes, int, bytes | None]]:
        return ((key, -number, value) for key, value in stream)

    last: bytes | None = None
    for key, age, value in merge_sorted(*(tagged(number, stream) for number, stream in enumerate(streams))):
        if key == last:
            continue
        last = key
        if value is not None and not (hidden[-age] and key in hidden[-age]):
            yield key, value


def _renamed(entries: Iterator[tuple[bytes, bytes]], changes: dict[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Entries with the state ids that the registry gives them now."""
    if not changes:
        return entries
    ids = {old: id_bytes(new) for old, new in changes.items()}
    return ((key[:2] + ids.get(read_id(key), key[2:HEAD_LENGTH]) + key[HEAD_LENGTH:], value) for key, value in entries)


def _batches(entries: Iterator[tuple[bytes, bytes]], timer_ids: set[int]) -> Iterator[list[Entry]]:
    """Entries to load, those of the timer index with the timers."""
    while batch := list(islice(entries, _BATCH)):
        loaded: list[Entry] = list(batch)
        if timer_ids:
            loaded += [(index_entry(key), b"") for key, _ in batch if read_id(key) in timer_ids]
        yield loaded
