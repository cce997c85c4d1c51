"""A local store in one RocksDB database. See state/store.py for the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, cast

from holdfast.errors import StateError
from holdfast.state.epoch_log import (
    RANGE_THRESHOLD,
    RECORDS_FLOOR_BYTES,
    changed_keys,
    check_next,
    decode_stamp,
    encode_record,
    encode_stamp,
    wrong_version,
)
from holdfast.state.handles import NativeImage
from holdfast.state.rocksdb import access, databases
from holdfast.state.rocksdb.epochs import EpochFiles
from holdfast.state.rocksdb.images import ENGINE, Deltas, LocalImage, LocalImages
from holdfast.state.rocksdb.options import RocksDbOptions
from holdfast.state.rocksdb.pending_changes import Entry, RunningEpoch, size_of
from holdfast.state.rocksdb.snapshot import NativeFull, NativeIncremental
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import ChangedKeys, Layer, LocalStore, Stamp
from holdfast.state.strategies import SnapshotStrategy

#: The key of the stamp; no state has the empty key. The keys of states begin right after it.
_STAMP, _FIRST = b"", b"\0"
#: Changes beyond this size are applied before the commit, with a record to undo them.
_SPILL_BYTES = 8 << 20
#: Entries of one write while changes are applied early; the write buffers are checked between two.
_BATCH = 8192
#: Remembered values beyond this size are forgotten all at once.
_REMEMBERED_BYTES = 48 << 20
#: Keys of one read; more of them cost RocksDB more for each.
_READ_KEYS = 512
#: Rows that a scan reads at a time; between two reads the store may be written behind them.
_SCAN_ROWS = 512
#: Fewer deleted keys are deleted one by one: a range tombstone costs every later read of its surroundings.
_TOMBSTONE_FROM = 4096
_DATA_SIZE = "rocksdb.estimate-live-data-size"


class RocksDbStore(LocalStore):
    """Changes wait in memory, and the commit applies them in one batch with the stamp: nothing is there before.

    An epoch that changes more than fits, or that scans among keys it has added, applies early what it has by then. The
    values before are on disk first, as pieces of the epoch's record, so that a rollback, or who comes after a crash,
    brings them back. A step back over a commit goes the same way and is done at once: the stamp first, then the undo.

    Nothing is synced: the log of the database survives a killed process, and the boot id in the stamp tells a restart.
    """

    def __init__(self, directory: Path, options: RocksDbOptions) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._shared: databases.Database | None = databases.acquire(directory, options)
        self._options = options
        self._records = EpochFiles(directory / "records")
        self.images = LocalImages(directory)
        self._db: Any = None
        self._base: Stamp | None = None
        self._epoch = RunningEpoch()
        #: Present values, those of pending changes among them. The next transaction may use them if it begins there.
        self._present: dict[bytes, bytes | None] = {}
        self._present_size = 0
        self._present_at: Stamp | None = None

    # Versions

    def stamp(self) -> Stamp | None:
        if self._db is not None:
            return self._stored_stamp(self._db)
        with self._database.reading() as db:
            return self._stored_stamp(db)

    def load(self, entries: Iterable[Sequence[tuple[bytes, bytes | None]]], stamp: Stamp) -> None:
        with self._replacing():
            self.images.drop_all()
            self._database.replace(lambda db: self._fill(db, [Layer(entries)], stamp))

    def load_native(self, image: NativeImage, reader: SnapshotReader, layers: Sequence[Layer], stamp: Stamp) -> bool:
        if image.engine != ENGINE:
            return False
        with self._replacing():
            self.images.drop_all()
            self._begin_with(self.images.download(image, reader), layers, stamp)
        return True

    def adopt(self, image: LocalImage, stamp: Stamp) -> None:
        """As ``load``, with what another store of this host was at ``stamp``."""
        with self._replacing():
            self._begin_with(self.images.adopt(image), (), stamp)

    def begin(self, base: Stamp) -> None:
        self.rollback()
        db = self._database.take(self)
        try:
            self._records.refresh()
            found = self._stored_stamp(db)
            if found is None:
                raise wrong_version(self._directory, found, base)
            self._undo_newer(db, found)
            if found != base:
                self._records.check_way_back(found, base)
                self._apply(db, [(_STAMP, encode_stamp(base))])
                self._undo_newer(db, base)
            if found != base or self._present_at != base:
                self._forget_present()
            self.images.keep_until(base)
        except BaseException:
            self._end()
            raise
        self._db, self._base = db, base

    def commit(self, stamp: Stamp) -> None:
        db, base, epoch = self._writing, self._base, self._epoch
        assert base is not None
        check_next(base, stamp, self._directory)
        self._records.add_piece(encode_record(base, stamp, epoch.ranges, epoch.before, epoch.before.values()))
        self._records.finish(stamp)
        self._apply(db, [*epoch.pending.items(), (_STAMP, encode_stamp(stamp))])
        if self._records.size > RECORDS_FLOOR_BYTES:
            self._records.trim(max(RECORDS_FLOOR_BYTES, db.property_int_value(_DATA_SIZE) or 0))
        self._present_at = stamp
        for image in epoch.images:
            image.settle(stamp)
        self._end()

    def rollback(self) -> None:
        if self._db is None:
            return
        try:
            self._forget_present()
            for image in self._epoch.images:
                image.drop()
            if self._epoch.pieces:
                self._undo(self._db, None)
        finally:
            self._end()

    def changes_since(self, epoch: int) -> ChangedKeys | None:
        if self._db is not None:
            return self._changes_since(epoch, self._base)
        with self._database.reading() as db:
            self._records.refresh()
            return self._changes_since(epoch, self._stored_stamp(db))

    def forget_changes(self, epoch: int) -> None:
        self.images.drop_before(epoch)
        if self._db is not None:
            self._records.drop_until(epoch)
            return
        with self._database.reading():
            self._records.refresh()
            self._records.drop_until(epoch)

    def strategies(self, of_entries: Sequence[SnapshotStrategy]) -> Sequence[SnapshotStrategy]:
        own = (NativeIncremental(self), NativeFull(self)) if self._options.native_snapshots else ()
        return (*own, *of_entries)

    def pin(self, savepoint: bool = False) -> LocalImage:
        """An image of what the running transaction has made of the store. What it applies early, a rollback undoes."""
        db, image = self._writing, self.images.new_for_savepoint() if savepoint else self.images.new()
        self._epoch.images.append(image)
        if self._epoch.pending:
            self._apply_early()
        self._checked(image.link_to, db)
        return image

    def close(self) -> None:
        if self._shared is None:
            return
        try:
            self.rollback()
        finally:
            databases.release(self._shared)
            self._shared = None

    # Entries

    def get(self, key: bytes) -> bytes | None:
        present = self._present
        if key not in present:
            if self._present_size > _REMEMBERED_BYTES:
                self._shrink_present()
            value = self._checked(self._writing.get, key)
            present[key] = value
            self._present_size += size_of(((key, value),))
        return present[key]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._learn(keys)
        return list(map(self._present.__getitem__, keys))

    def write(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        present, epoch = self._present, self._epoch
        self._learn([key for key, _ in entries])
        changes = [entry for entry in entries if present[entry[0]] != entry[1]]
        if not changes:
            return
        self._present_size += epoch.add(changes, present)
        present.update(changes)
        if epoch.size > _SPILL_BYTES:
            self._apply_early()

    def delete_range(self, start: bytes, end: bytes) -> None:
        doomed = list(islice(self.scan(start, end), _TOMBSTONE_FROM))
        if len(doomed) < _TOMBSTONE_FROM:
            self._remember(doomed)
            self.write([(key, None) for key, _ in doomed])
        else:
            self._delete_large_range(max(start, _FIRST), end)
        if len(doomed) >= RANGE_THRESHOLD:
            self._epoch.ranges.append((start, end))

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        if self._epoch.inserts:
            self._apply_early()
        seek: bytes | None = max(start, _FIRST)
        while seek is not None:
            rows = self._rows(seek, end)
            seek = rows[-1][0] + b"\0" if len(rows) == _SCAN_ROWS else None
            pending = self._epoch.pending
            for key, value in rows:
                current = pending.get(key, value) if pending else value
                if current is not None:
                    yield key, current

    def last_key(self, start: bytes, end: bytes) -> bytes | None:
        if self._epoch.inserts:
            self._apply_early()
        pending, keys = self._epoch.pending, access.keys_down(self._writing, max(start, _FIRST), end)
        present = (key for key in keys if pending.get(key, key) is not None)
        return cast(bytes | None, self._checked(next, present, None))

    # Inside

    @property
    def _database(self) -> databases.Database:
        if self._shared is None:
            raise StateError(f"The store {self._directory} is closed.")
        return self._shared

    @property
    def _writing(self) -> Any:
        if self._db is None:
            raise StateError(f"The store {self._directory} has no transaction; call begin first.")
        return self._db

    def _end(self) -> None:
        self._db = self._base = None
        self._epoch = RunningEpoch()
        self._database.give_back()

    def _stored_stamp(self, db: Any) -> Stamp | None:
        data = None if db is None else self._checked(db.get, _STAMP)
        return None if data is None else decode_stamp(data)

    def _changes_since(self, epoch: int, stamp: Stamp | None) -> ChangedKeys | None:
        if stamp is None or epoch > stamp.epoch:
            return None
        oldest = self._records.oldest()
        if epoch < (stamp.epoch if oldest is None else oldest - 1):
            return None
        running = [None] if self._epoch.pieces else []
        pieces = [piece for one in [*self._records.newer_than(epoch), *running] for piece in self._records.pieces(one)]
        ranges = [one for piece in pieces for one in piece.ranges] + self._epoch.ranges
        return changed_keys(ranges, [*(piece.keys for piece in pieces), self._epoch.before])

    # A new content

    @contextmanager
    def _replacing(self) -> Iterator[None]:
        """Stands around everything that puts another database into the place of this one."""
        self.rollback()
        self._database.take(self)
        try:
            self._forget_present()
            yield
            self._records.refresh()
            for old in self._records.newer_than(-1):
                self._records.drop(old)
            self._records.drop_running()
        finally:
            self._end()

    def _begin_with(self, image: LocalImage, layers: Sequence[Layer], stamp: Stamp) -> None:
        """Stored changes on top make another database of it, whose image is kept instead."""
        sizes = [layer.size for layer in layers if layer.size]
        own = self.images.new() if sizes else image

        def fill(db: Any) -> None:
            self._fill(db, layers, stamp)
            if own is not image:
                self._checked(own.link_to, db)
                own.set_stored(image.stored or (), Deltas(sum(sizes), len(sizes)))
                own.take_checksums({})
                image.drop()

        self._database.replace(fill, image.link_into)
        own.settle(stamp)

    def _fill(self, db: Any, layers: Iterable[Layer], stamp: Stamp) -> None:
        options = access.unlogged()
        for layer in layers:
            for start, end in layer.ranges:
                self._checked(access.delete_range, db, start, end, options)
            for batch in layer.batches:
                self._apply(db, batch, options)
        self._apply(db, [(_STAMP, encode_stamp(stamp))], options)

    # Changes before the commit, and back

    def _apply_early(self) -> None:
        """Bring pending changes into the database, and on disk before that what undoes them."""
        db, epoch = self._writing, self._epoch
        self._write_piece()
        changes = iter(epoch.pending.items())
        while batch := list(islice(changes, _BATCH)):
            self._apply(db, batch)
        epoch.applied()

    def _write_piece(self) -> None:
        assert self._base is not None
        running = Stamp(self._base.epoch + 1, "running")
        self._records.add_piece(encode_record(self._base, running, [], self._epoch.before, self._epoch.before.values()))
        self._epoch.pieces += 1

    def _delete_large_range(self, start: bytes, end: bytes) -> None:
        if self._epoch.pending:
            self._apply_early()
        rows = self.scan(start, end)
        while batch := list(islice(rows, _BATCH)):
            self._epoch.before = dict(batch)
            self._write_piece()
        self._checked(access.delete_range, self._writing, start, end)
        self._epoch.applied()
        self._forget_present()

    def _undo_newer(self, db: Any, stamp: Stamp) -> None:
        """Undo what is newer than the stamp: what an execution left that died, or epochs to step back over."""
        for one in (None, *reversed(self._records.newer_than(stamp.epoch))):
            self._undo(db, one)

    def _undo(self, db: Any, stamp: Stamp | None) -> None:
        for piece in self._records.pieces(stamp, newest_first=True):
            self._apply(db, list(zip(piece.keys, piece.values, strict=True)))
        if stamp is None:
            self._records.drop_running()
        else:
            self._records.drop(stamp)

    # The database

    def _apply(self, db: Any, entries: Sequence[Entry], options: Any = None) -> None:
        self._checked(access.apply, db, entries, options)

    def _rows(self, seek: bytes, end: bytes) -> list[tuple[bytes, bytes]]:
        """Rows of the database from ``seek`` on, some hundred."""
        rows = islice(access.rows(self._writing, seek, end), _SCAN_ROWS)
        return cast(list[tuple[bytes, bytes]], self._checked(list, rows))

    def _checked(self, call: Any, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except Exception as error:
            raise StateError(
                f"The store {self._directory} cannot be read or written: {error}. Check the space left on its disk."
            ) from error

    # Present values

    def _learn(self, keys: Sequence[bytes]) -> None:
        """Remember the present values of ``keys``, reading those that are not known."""
        if self._present_size > _REMEMBERED_BYTES:
            self._shrink_present()
        present = self._present
        unknown = [key for key in keys if key not in present]
        for at in range(0, len(unknown), _READ_KEYS):
            some = unknown[at : at + _READ_KEYS]
            self._remember(list(zip(some, self._checked(self._writing.get, some), strict=True)))

    def _remember(self, entries: Sequence[Entry]) -> None:
        self._present.update(entries)
        self._present_size += size_of(entries)

    def _shrink_present(self) -> None:
        """Forget all but what the database does not have yet."""
        self._forget_present()
        self._remember(list(self._epoch.pending.items()))

    def _forget_present(self) -> None:
        self._present.clear()
        self._present_size = 0
