"""Keyed snapshots back into a local store."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import merge as merge_sorted
from itertools import chain, islice
from pathlib import Path

from holdfast.state import registry
from holdfast.state.backends import backend_of_images
from holdfast.state.canonical.keyed_tables import KeyedTableReader, bytes_of_table
from holdfast.state.epoch_log import RangeSet, changed_keys
from holdfast.state.handles import FileHandle, KeyedFile, KeyedSnapshot, SnapshotKind, StateMigrated
from holdfast.state.key_collisions import KeyMigrationRun
from holdfast.state.keyed_file import Entry, KeyedFileReader, reads_at_once
from holdfast.state.keygroups import UPPER_BOUND_MAX_PARALLELISM, KeyGroupRange
from holdfast.state.layout import HEAD_LENGTH, MIGRATED, REGISTRY_KEY, id_bytes, number_bytes, prefix_end, read_id
from holdfast.state.migration import stamping
from holdfast.state.redistribution import assign_keyed
from holdfast.state.regrouping import Regrouping
from holdfast.state.rewriting import Progress
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Layer, LocalStore, Stamp
from holdfast.state.timers import index_entry
from holdfast.types.clock import wall_clock

_BATCH = 4096
_EVERY_KEY_GROUP = KeyGroupRange(0, UPPER_BOUND_MAX_PARALLELISM - 1)


@dataclass(frozen=True)
class KeyedShare:
    """What one subtask takes of the keyed state that all old subtasks of its operator wrote."""

    #: The snapshots that it reads, in the order of their key groups.
    snapshots: tuple[KeyedSnapshot, ...]
    #: Its own key groups.
    key_groups: KeyGroupRange
    #: Set where the maximum parallelism or the keys change. Where keys move between key groups with it, everything is
    #: read, and what is not its own left out.
    regrouping: Regrouping | None = None
    #: Whose share it is, for progress.
    subtask: int = 0

    @classmethod
    def of(
        cls,
        written: Sequence[KeyedSnapshot],
        key_groups: KeyGroupRange,
        regrouping: Regrouping | None = None,
        subtask: int = 0,
    ) -> KeyedShare:
        moves = regrouping is not None and regrouping.moves
        wanted = list(written) if moves else assign_keyed(written, key_groups)
        return cls(tuple(sorted(wanted, key=lambda one: one.first_key_group)), key_groups, regrouping, subtask)

    @property
    def read_groups(self) -> KeyGroupRange:
        """The key groups that it reads."""
        return _EVERY_KEY_GROUP if self.regrouping is not None and self.regrouping.moves else self.key_groups

    @property
    def whole_database(self) -> KeyedSnapshot | None:
        """The snapshot of the only subtask that it reads, if that had the same key groups and stored its database."""
        if len(self.snapshots) != 1 or self.regrouping is not None:
            return None
        (only,) = self.snapshots
        same = KeyGroupRange(only.first_key_group, only.last_key_group) == self.key_groups
        return only if same and only.native is not None else None

    def files_of(self, snapshot: KeyedSnapshot) -> list[KeyedFile]:
        """The files of one of its snapshots that it reads, in order of application."""
        starts = [number for number, file in enumerate(snapshot.files) if file.kind is SnapshotKind.FULL]
        files = snapshot.files[starts[-1] if starts else 0 :]
        return [file for file in files if _range_of(file).intersects(self.read_groups)]


def restore_into(
    store: LocalStore,
    share: KeyedShare,
    reader: SnapshotReader,
    stamp: Stamp,
    clock: Callable[[], int] = wall_clock,
    scratch: Path | None = None,
) -> StateMigrated | None:
    """Make ``share`` the content of ``store``, at ``stamp``.

    What one subtask wrote as the files of its database, and one subtask with the same key groups and the same engine
    reads, is taken as it is, and what was stored on top of it applied. Otherwise its entries are read, from a database
    below ``scratch``. Of files of entries only blocks with key groups of the share are read. Subtasks that gave the
    same state different ids are brought together, as are those that stored it with and without a time to live, and the
    index of timers is built anew. Without snapshots the store is empty. Gives what was done to keys that were migrated.
    """
    merged, id_changes = registry.merge(share.snapshots)
    whole = share.whole_database
    opened = None
    if whole is not None and whole.native is not None and not any(id_changes):
        opened = _open_files(share, whole, reader)
        layers = _layers(share.files_of(whole), opened, merged)
        if layers is not None and store.load_native(whole.native, reader, layers, stamp):
            return None

    def read() -> Iterator[tuple[bytes, bytes]]:
        return chain.from_iterable(
            _renamed(
                _stamped(_entries_of(share, snapshot, reader, scratch, opened), snapshot, changes, merged, clock),
                changes,
            )
            for snapshot, changes in zip(share.snapshots, id_changes, strict=True)
        )

    regrouping = share.regrouping
    if regrouping is None:
        _load(store, share, merged, read(), stamp)
    elif regrouping.keys is None or not share.snapshots:
        moved = regrouping.of_range(read(), share.key_groups)
        _load(store, share, merged, ((one.stored, one.value) for one in moved), stamp)
    else:
        return _load_migrated(store, share, merged, read, stamp)
    return None


def _load_migrated(
    store: LocalStore,
    share: KeyedShare,
    merged: registry.StateRegistry,
    read: Callable[[], Iterator[tuple[bytes, bytes]]],
    stamp: Stamp,
) -> StateMigrated:
    """Load entries whose keys change."""
    regrouping = share.regrouping
    assert regrouping is not None and regrouping.keys is not None
    plan = regrouping.keys
    progress = Progress(plan.rewrite.operator, share.subtask, "*", plan.versions)
    run = KeyMigrationRun(regrouping, plan, merged.states(), read)
    merged.key_serializer, merged.key_version = regrouping.codec.snapshot(), plan.versions[1]
    marks = [(MIGRATED, number_bytes(stamp.epoch + 1))]
    _load(store, share, merged, run.entries(share.key_groups, progress), stamp, marks)
    return progress.done()


def _load(
    store: LocalStore,
    share: KeyedShare,
    merged: registry.StateRegistry,
    entries: Iterator[Entry],
    stamp: Stamp,
    marks: Sequence[Entry] = (),
) -> None:
    known: list[Entry] = [(REGISTRY_KEY, merged.encode()), *marks]
    batches = iter(lambda: list(islice(entries, _BATCH)), [])
    # What the store keeps for itself comes last, as its keys do.
    store.load(chain(_indexed(batches, _timer_ids(merged)), [known] if share.snapshots else []), stamp)


class RestoreForecast:
    """How many bytes of keyed state restores read: known from the indexes of the files, each of which is read once."""

    def __init__(self, reader: SnapshotReader) -> None:
        self._reader = reader
        self._opened: dict[FileHandle, KeyedFileReader] = {}

    def bytes_of(self, share: KeyedShare) -> int:
        files = [file for snapshot in share.snapshots for file in share.files_of(snapshot)]
        images = [snapshot.native for snapshot in share.snapshots if snapshot.native is not None]
        entries = sum(self._bytes_of(file, share.read_groups) for file in files)
        return entries + sum(image.size for image in images)

    def _bytes_of(self, file: KeyedFile, key_groups: KeyGroupRange) -> int:
        if file.handle.table is not None:
            return bytes_of_table(file.handle, key_groups)
        if reads_at_once(file, key_groups):
            return file.handle.size
        opened = self._opened.get(file.handle)
        if opened is None:
            opened = self._opened[file.handle] = KeyedFileReader(file, self._reader, key_groups)
        return opened.bytes_of(key_groups)


def _range_of(file: KeyedFile) -> KeyGroupRange:
    return KeyGroupRange(file.first_key_group, file.last_key_group)


def _open_files(share: KeyedShare, snapshot: KeyedSnapshot, reader: SnapshotReader) -> list[KeyedFileReader]:
    return [KeyedFileReader(file, reader, share.read_groups) for file in share.files_of(snapshot)]


def _layers(
    files: Sequence[KeyedFile], opened: Sequence[KeyedFileReader], merged: registry.StateRegistry
) -> list[Layer] | None:
    """What is on top of a database: changes of files of entries, those of the index of timers with them, then what the
    store keeps for itself. None where a deleted range may have timers, whose part of the index nobody knows.
    """
    timer_ids = _timer_ids(merged)
    if not all(_is_of_others(one, timer_ids) for file in opened for one in file.ranges):
        return None
    layers = [
        Layer(_indexed(one.batches(), timer_ids), one.ranges, file.handle.size)
        for file, one in zip(files, opened, strict=True)
    ]
    # Whatever was migrated in the job that wrote the database, all of it is in this snapshot.
    return [*layers, Layer([[(REGISTRY_KEY, merged.encode()), (MIGRATED, None)]])]


def _is_of_others(key_range: tuple[bytes, bytes], timer_ids: set[int]) -> bool:
    """Whether a range is within one state of one key group which is not one of timers."""
    start, end = key_range
    head = start[:HEAD_LENGTH]
    return len(head) == HEAD_LENGTH and end <= prefix_end(head) and read_id(head) not in timer_ids


def _timer_ids(merged: registry.StateRegistry) -> set[int]:
    return {meta.state_id for meta in merged.states() if meta.kind == registry.TIMERS}


def _entries_of(
    share: KeyedShare,
    snapshot: KeyedSnapshot,
    reader: SnapshotReader,
    scratch: Path | None,
    opened: list[KeyedFileReader] | None,
) -> Iterator[tuple[bytes, bytes]]:
    """What the files of one snapshot make up: in key order or, where it has a table for each state, table by table."""
    files = share.files_of(snapshot)
    if any(file.handle.table is not None for file in files):
        tables = (KeyedTableReader(file, snapshot, reader, share.read_groups) for file in files)
        return chain.from_iterable(chain.from_iterable(table.batches()) for table in tables)
    readers = _open_files(share, snapshot, reader) if opened is None else opened
    streams: list[Iterable[Entry]] = [chain.from_iterable(one.batches()) for one in readers]
    ranges = [one.ranges for one in readers]
    if snapshot.native is not None:
        image = snapshot.native
        database = backend_of_images(image.engine).native_entries(image, reader, share.read_groups, scratch)
        if not readers:
            return database
        streams, ranges = [database, *streams], [[], *ranges]
    if len(streams) == 1:
        return ((key, value) for key, value in streams[0] if value is not None)
    return _applied(streams, ranges)


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


def _stamped(
    entries: Iterator[tuple[bytes, bytes]],
    snapshot: KeyedSnapshot,
    changes: dict[int, int],
    merged: registry.StateRegistry,
    clock: Callable[[], int],
) -> Iterator[tuple[bytes, bytes]]:
    """Entries with times of access where the registry says so and this snapshot has none."""
    bare = {
        meta.state_id: meta.kind
        for meta in snapshot.states
        if not meta.ttl and merged.of_id(changes.get(meta.state_id, meta.state_id)).ttl
    }
    if not bare:
        return entries
    now = clock()
    rewrites = {state_id: stamping(kind, now) for state_id, kind in bare.items()}
    return ((key, rewrites[read_id(key)](value) if read_id(key) in rewrites else value) for key, value in entries)


def _renamed(entries: Iterator[tuple[bytes, bytes]], changes: dict[int, int]) -> Iterator[tuple[bytes, bytes]]:
    """Entries with the state ids that the registry gives them now."""
    if not changes:
        return entries
    ids = {old: id_bytes(new) for old, new in changes.items()}
    return ((key[:2] + ids.get(read_id(key), key[2:HEAD_LENGTH]) + key[HEAD_LENGTH:], value) for key, value in entries)


def _indexed(batches: Iterable[list[Entry]], timer_ids: set[int]) -> Iterator[list[Entry]]:
    """Entries to load, those of the timer index with the timers."""
    for batch in batches:
        if timer_ids:
            timers = [(index_entry(key), value) for key, value in batch if read_id(key) in timer_ids]
            yield batch + timers
        else:
            yield batch
