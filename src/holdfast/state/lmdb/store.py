"""A local store in one LMDB environment. See state/store.py for the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from operator import itemgetter, lt, ne
from pathlib import Path
from typing import Any
from weakref import ref

import lmdb

from holdfast.errors import StateError, StoreDamagedError
from holdfast.state.content_digest import NOTHING, with_change, with_entries, without_entries
from holdfast.state.epoch_log import (
    RANGE_THRESHOLD,
    RECORDS_FLOOR_BYTES,
    changed_keys,
    check_next,
    decode_record,
    encode_record,
    wrong_version,
)
from holdfast.state.handles import NativeImage
from holdfast.state.lmdb import environments, long_keys, restore, rows
from holdfast.state.lmdb.epochs import EpochTable
from holdfast.state.lmdb.image import ENGINE
from holdfast.state.lmdb.long_keys import GROUP, LONG, Entry
from holdfast.state.lmdb.meta import content_digest, put_meta, stored_digest, stored_stamp
from holdfast.state.lmdb.options import PREFIX, LmdbOptions
from holdfast.state.lmdb.snapshot import IMAGES_FROM_BYTES, NativeFull
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import ChangedKeys, Layer, LocalStore, Stamp
from holdfast.state.strategies import SnapshotStrategy

#: Values that are remembered; more of them are forgotten all at once.
_REMEMBERED = 200_000
#: Rows of a range that are deleted at a time.
_DELETED = 512
_key_of, _value_of = itemgetter(0), itemgetter(1)


class LmdbStore(LocalStore):
    """One write transaction from ``begin`` to ``commit``; LMDB's writer lock keeps other processes out meanwhile.

    ``epochs`` holds one record per epoch with the values *before* it: the undo and the change marks at once.
    Present values that were read or written are remembered: a write needs them for that record, and a snapshot reads
    what was just written. They are good for the next transaction too, if it begins where this one ended.
    """

    def __init__(self, directory: Path, options: LmdbOptions, images_from: int = IMAGES_FROM_BYTES) -> None:
        self._directory = directory
        self._options = options
        self._images_from = images_from
        #: Opened when it is needed, so that an image may be put into its place before.
        self._env: environments.Environment | None = None
        self._closed = False
        self._txn: Any = None
        self._base: Stamp | None = None
        self._before = _Before()
        self._ranges: list[tuple[bytes, bytes]] = []
        self._present: dict[bytes, bytes | None] = {}
        self._present_at: Stamp | None = None
        #: Of the rows, as they were when the transaction began, and as it has made them.
        self._base_digest = self._digest = NOTHING

    # Versions

    def stamp(self) -> Stamp | None:
        if self._env is None and not environments.exists(self._directory):
            return None
        with self._reading() as txn:
            return self._stored_stamp(txn)

    def load(self, entries: Iterable[Sequence[tuple[bytes, bytes | None]]], stamp: Stamp) -> None:
        self._replace([Layer(entries)], stamp, (self._open.data, self._open.epochs))

    def load_native(self, image: NativeImage, reader: SnapshotReader, layers: Sequence[Layer], stamp: Stamp) -> bool:
        """Only where there is no store yet: a file that somebody may have open is not replaced."""
        if image.engine != ENGINE or environments.exists(self._directory):
            return False

        def finish(folder: Path) -> None:
            store = LmdbStore(folder, self._options)
            try:
                store._replace(layers, stamp, (store._open.epochs,))
            finally:
                store.close()

        restore.make_store(self._directory, image, reader, finish)
        # Another process may have made it meanwhile.
        return self.stamp() == stamp

    def strategies(self, of_entries: Sequence[SnapshotStrategy]) -> Sequence[SnapshotStrategy]:
        changed, everything = of_entries
        return changed, NativeFull(self, self._images_from), everything

    def pin(self) -> tuple[environments.Pin, ChangedKeys] | None:
        """The last commit, and what the running transaction has changed since. None where that does not begin there,
        but has stepped back.
        """
        base, pin = self._base, environments.Pin(self._open)
        changes = None
        if base is not None and self._stored_stamp(pin.txn) == base:
            changes = self.changes_since(base.epoch)
        if changes is None:
            pin.end()
            return None
        return pin, changes

    def begin(self, base: Stamp) -> None:
        with self._explained():
            txn = self._start()
            try:
                found = self._stored_stamp(txn)
                if found != base:
                    self._step_back(txn, found, base)
                self._digest = self._base_digest = self._found_digest(txn)
                if found != base or self._present_at != base:
                    self._present.clear()
            except BaseException:
                self.rollback()
                raise
        self._base = base

    def commit(self, stamp: Stamp) -> None:
        txn, base = self._writing, self._base
        if base is None:
            raise StateError(f"The store {self._directory} has no transaction to commit; call begin first.")
        check_next(base, stamp, self._directory)
        with self._explained():
            table = EpochTable(txn, self._open.epochs)
            before = self._before.keys, self._before.values
            table.put(stamp.epoch, encode_record(base, stamp, self._ranges, *before, self._base_digest))
            table.trim(max(RECORDS_FLOOR_BYTES, table.size_of(self._open.data)))
            put_meta(txn, self._open.meta, stamp, self._digest)
            txn.commit()
        self._forget_transaction()
        self._present_at = stamp

    def rollback(self) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._present.clear()
        self._forget_transaction()

    def changes_since(self, epoch: int) -> ChangedKeys | None:
        with self._reading() as txn:
            stamp = self._stored_stamp(txn)
            if stamp is None or epoch > stamp.epoch:
                return None
            table = EpochTable(txn, self._open.epochs)
            oldest = table.oldest()
            reach = stamp.epoch if oldest is None else oldest - 1
            if epoch < reach:
                return None
            records = [decode_record(data) for data in table.newer_than(epoch)]
        ranges = [one for record in records for one in record.ranges] + self._ranges
        return changed_keys(ranges, [*(record.keys for record in records), self._before.keys])

    def forget_changes(self, epoch: int) -> None:
        if self._txn is not None:
            EpochTable(self._txn, self._open.epochs).drop_until(epoch)
            return
        with self._open.handle.begin(write=True) as txn:
            EpochTable(txn, self._open.epochs).drop_until(epoch)

    def close(self) -> None:
        if self._env is not None:
            self.rollback()
            environments.release(self._env)
            self._env = None
        self._closed = True

    # Entries

    def get(self, key: bytes) -> bytes | None:
        present = self._present
        if key not in present:
            if len(key) >= LONG or len(present) >= _REMEMBERED:
                self._learn([key])
            else:
                present[key] = self._writing.get(key)
        return present[key]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        present = self._present
        try:
            return list(map(present.__getitem__, keys))
        except KeyError:
            self._learn(keys)
        return list(map(present.__getitem__, keys))

    def write(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        keys = list(map(_key_of, entries))
        if not _in_order(keys):
            entries = sorted(entries, key=_key_of)
            keys = list(map(_key_of, entries))
        values, previous = list(map(_value_of, entries)), self.get_many(keys)
        if not all(map(ne, values, previous)):
            changed = [at for at, (new, old) in enumerate(zip(values, previous, strict=True)) if new != old]
            keys, values, previous = ([column[at] for at in changed] for column in (keys, values, previous))
        with self._explained():
            self._apply(keys, values)
        self._digest = with_change(self._digest, keys, values, previous)
        self._before.note(keys, previous)
        self._present.update(zip(keys, values, strict=True))

    def delete_range(self, start: bytes, end: bytes) -> None:
        count = 0
        delete = self._writing.delete
        doomed = self.scan(start, end)
        while some := list(islice(doomed, _DELETED)):
            keys, values = list(map(_key_of, some)), list(map(_value_of, some))
            self._before.note(keys, values)
            for key in keys:
                delete(long_keys.stored_key(key))
            self._digest = without_entries(self._digest, keys, values)
            count += len(some)
        if count >= RANGE_THRESHOLD:
            self._ranges.append((start, end))
        self._present.clear()

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        return rows.scan(self._writing, start, end)

    def last_key(self, start: bytes, end: bytes) -> bytes | None:
        cursor = self._writing.cursor()
        # Keys of the group of a long ``end`` may be below it although their digests are not.
        seek = end if len(end) <= GROUP else end[:GROUP] + b"\xff" * (LONG - GROUP + 1)
        more = cursor.prev() if cursor.set_range(seek) else cursor.last()
        while more:
            group = cursor.key()[:GROUP]
            rows: list[Entry] = []
            while more and cursor.key()[:GROUP] == group:
                rows.append(cursor.item())
                more = cursor.prev()
            keys = [key for key, _ in long_keys.in_key_order(rows[::-1]) if start <= key < end]
            if keys or group < start[:GROUP]:
                return keys[-1] if keys else None
        return None

    # Inside

    @property
    def _open(self) -> environments.Environment:
        if self._closed:
            raise StateError(f"The store {self._directory} is closed.")
        if self._env is None:
            self._env = environments.acquire(self._directory, self._options.map_size)
        return self._env

    @property
    def _writing(self) -> Any:
        if self._txn is None:
            raise StateError(f"The store {self._directory} has no transaction; call begin first.")
        return self._txn

    def _replace(self, layers: Iterable[Layer], stamp: Stamp, emptied: Sequence[Any]) -> None:
        """Empty some of the databases, apply changes in order, and commit that as ``stamp``."""
        self._present.clear()
        with self._explained():
            txn = self._start()
            try:
                for database in emptied:
                    txn.drop(database, delete=False)
                self._digest = NOTHING if self._open.data in emptied else self._found_digest(txn)
                for layer in layers:
                    self._lay(layer)
                put_meta(txn, self._open.meta, stamp, self._digest)
                txn.commit()
            except BaseException:
                txn.abort()
                raise
            finally:
                self._forget_transaction()

    def _lay(self, layer: Layer) -> None:
        for start, end in layer.ranges:
            for key, value in self.scan(start, end):
                self._writing.delete(long_keys.stored_key(key))
                self._digest = without_entries(self._digest, [key], [value])
        for batch in layer.batches:
            if self._append(batch):
                self._digest = with_entries(self._digest, map(_key_of, batch), map(_value_of, batch))
                continue
            batch = sorted(batch, key=_key_of)
            keys, values = list(map(_key_of, batch)), list(map(_value_of, batch))
            previous = self._read(keys)
            self._apply(keys, values)
            self._digest = with_change(self._digest, keys, values, list(map(previous.get, keys)))

    def _start(self) -> Any:
        """Wait for the writer lock and start the transaction."""
        environment = self._open
        self.rollback()
        if environment.writer is not None and environment.writer() is not None:
            raise StateError(f"The store {self._directory} already has a transaction in this process; end it first.")
        # A process that died while it copied a pinned view would keep all later pages from being used again.
        environment.handle.reader_check()
        self._txn = environment.handle.begin(write=True, db=environment.data)
        environment.writer = ref(self)
        return self._txn

    def _forget_transaction(self) -> None:
        if self._txn is not None and self._env is not None:
            self._env.writer = None
        self._txn = self._base = None
        self._before = _Before()
        self._ranges = []

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """The running transaction, or a short one of its own."""
        if self._txn is not None:
            yield self._txn
            return
        with self._open.handle.begin() as txn:
            yield txn

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except lmdb.MapFullError as error:
            raise StateError(
                f"The store {self._directory} needs more than its map size of {self._options.map_size} bytes. "
                f"Raise '{PREFIX}map-size', or the parallelism of the operator."
            ) from error
        except lmdb.Error as error:
            raise StateError(
                f"The store {self._directory} cannot be written: {error}. {environments.disk_advice(self._directory)}"
            ) from error

    def _stored_stamp(self, txn: Any) -> Stamp | None:
        return stored_stamp(txn, self._open.meta)

    def _found_digest(self, txn: Any) -> int:
        found = stored_digest(txn, self._open.meta)
        if found is None:
            # An image of a version that had none: what is read here was verified when it was restored.
            found = content_digest(txn, self._open.data)
        if found is None:
            raise StoreDamagedError(f"The store {self._directory} has other rows than it counts.")
        return found

    def _step_back(self, txn: Any, found: Stamp | None, base: Stamp) -> None:
        """Undo epochs, newest first, until the store is at ``base``."""
        table = EpochTable(txn, self._open.epochs)
        current, digest = found, NOTHING
        while current is not None and current.epoch > base.epoch:
            data = table.get(current.epoch)
            if data is None:
                raise wrong_version(self._directory, found, base, f"no undo of epoch {current.epoch} is left")
            record = decode_record(data)
            self._apply(record.keys, record.values)
            table.drop(current.epoch)
            current, digest = record.base, record.base_digest
        if current != base:
            stepped = current is not None and current != found
            reason = f"its epoch {current.epoch} is of execution {current.nonce}" if stepped and current else ""
            raise wrong_version(self._directory, found, base, reason)
        put_meta(txn, self._open.meta, base, digest)

    def _learn(self, keys: Sequence[bytes]) -> None:
        """Remember the present values of ``keys``, reading those that are not known."""
        present = self._present
        if len(present) + len(keys) > _REMEMBERED:
            present.clear()
        unknown = [key for key in keys if key not in present]
        if unknown:
            present.update(self._read(unknown))

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes | None]:
        """The present values of ``keys``."""
        if long_keys.has_long(keys):
            found = [(key, self._writing.get(long_keys.stored_key(key))) for key in keys]
            return {key: None if raw is None else long_keys.value_of(key, raw) for key, raw in found}
        ordered = sorted(keys)
        rows = self._writing.cursor().getmulti(ordered)
        if len(rows) == len(ordered):
            # With the keys that were given: whoever has those finds them faster.
            return dict(zip(ordered, map(_value_of, rows), strict=True))
        values: dict[bytes, bytes | None] = dict.fromkeys(ordered)
        values.update(rows)
        return values

    def _append(self, entries: Sequence[tuple[bytes, bytes | None]]) -> bool:
        """Put entries without a search for their places, if they are in order and above all others."""
        cursor = self._writing.cursor()
        last = cursor.key() if cursor.last() else b""
        keys = [last, *map(_key_of, entries)]
        if not _in_order(keys) or long_keys.has_long(keys) or None in map(_value_of, entries):
            return False
        cursor.putmulti(entries, append=True)
        return True

    def _apply(self, keys: Sequence[bytes], values: Sequence[bytes | None]) -> None:
        """Put and delete without a record, fastest in the order of the keys."""
        puts: Iterable[tuple[bytes, bytes | None]] = zip(keys, values, strict=True)
        deletes: Sequence[bytes] = ()
        # None is no value. A timer's, which has no byte, is one.
        if not all(values):
            entries = list(puts)
            puts = [entry for entry in entries if entry[1] is not None]
            deletes = [key for key, value in entries if value is None]
        if long_keys.has_long(keys):
            puts = [long_keys.pack(key, value) for key, value in puts if value is not None]
            deletes = list(map(long_keys.stored_key, deletes))
        self._writing.cursor().putmulti(puts)
        for key in deletes:
            self._writing.delete(key)


class _Before:
    """What the keys that a transaction has changed had before it."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        self.values: list[bytes | None] = []
        #: Not before somebody asks: most transactions write once.
        self._known: set[bytes] = set()

    def note(self, keys: list[bytes], values: list[bytes | None]) -> None:
        """Keys, each of them once, that are changed now. What is known of one already is older, and stays."""
        if not self.keys:
            self.keys, self.values = keys, values
            return
        if not self._known:
            self._known.update(self.keys)
        for key, value in zip(keys, values, strict=True):
            if key not in self._known:
                self._known.add(key)
                self.keys.append(key)
                self.values.append(value)


def _in_order(keys: Sequence[bytes]) -> bool:
    return all(map(lt, keys, islice(keys, 1, None)))
