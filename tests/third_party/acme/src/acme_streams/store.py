"""A local store in a database of SQLite, which lets others read while one writes (WAL)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from acme_streams.images import ENGINE, AcmeImages, downloaded
from holdfast.errors import StateError
from holdfast.state.epoch_log import changed_keys, check_next, decode_stamp, encode_stamp, wrong_version
from holdfast.state.handles import NativeImage
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import ChangedKeys, Layer, LocalStore, Stamp
from holdfast.state.strategies import SnapshotStrategy

_TABLES = """
CREATE TABLE IF NOT EXISTS data (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS epochs (epoch INTEGER PRIMARY KEY, nonce TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS undo (epoch INTEGER, key BLOB, before BLOB, PRIMARY KEY (epoch, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value BLOB NOT NULL);
"""
#: What a key had before the epoch, once, and only where that is to change.
_REMEMBER = """
INSERT OR IGNORE INTO undo SELECT :epoch, :key, (SELECT value FROM data WHERE key = :key)
WHERE (SELECT value FROM data WHERE key = :key) IS NOT :value
"""
_CHUNK = 500

Batches = Iterable[Sequence[tuple[bytes, bytes | None]]]


class AcmeStore(LocalStore):
    """``epochs`` has the stamps that it can step back to, ``undo`` what their epochs have changed."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self._connection: sqlite3.Connection | None = None
        #: Of the running transaction.
        self._base: Stamp | None = None

    # Versions

    def stamp(self) -> Stamp | None:
        found = self._db.execute("SELECT value FROM meta WHERE name = 'stamp'").fetchone()
        return None if found is None else decode_stamp(found[0])

    def load(self, entries: Batches, stamp: Stamp) -> None:
        self._replace(entries, stamp)

    def begin(self, base: Stamp) -> None:
        self.rollback()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            found = self.stamp()
            if found is None or not self._knows(base):
                raise wrong_version(self.directory, found, base)
            if found != base:
                self._step_back(base)
        except BaseException:
            self.rollback()
            raise
        self._base = base

    def _knows(self, stamp: Stamp) -> bool:
        found = self._db.execute("SELECT nonce FROM epochs WHERE epoch = ?", (stamp.epoch,)).fetchone()
        return bool(found == (stamp.nonce,))

    def _step_back(self, base: Stamp) -> None:
        newer = "FROM undo WHERE epoch > ? ORDER BY epoch DESC"
        for key, before in self._db.execute(f"SELECT key, before {newer}", (base.epoch,)).fetchall():
            self._put([(key, before)])
        for table in ("undo", "epochs"):
            self._db.execute(f"DELETE FROM {table} WHERE epoch > ?", (base.epoch,))
        self._set_stamp(base)

    def commit(self, stamp: Stamp) -> None:
        check_next(self._running, stamp, self.directory)
        self._set_stamp(stamp)
        self._db.execute("COMMIT")
        self._base = None

    def rollback(self) -> None:
        self._base = None
        if self._connection is not None and self._connection.in_transaction:
            self._connection.execute("ROLLBACK")

    def changes_since(self, epoch: int) -> ChangedKeys | None:
        stamp, (first,) = self.stamp(), self._db.execute("SELECT min(epoch) FROM epochs").fetchone()
        if stamp is None or not first <= epoch <= stamp.epoch:
            return None
        keys = self._db.execute("SELECT DISTINCT key FROM undo WHERE epoch > ?", (epoch,))
        return changed_keys((), [[key for (key,) in keys]])

    def forget_changes(self, epoch: int) -> None:
        stamp = self.stamp()
        if stamp is not None:
            # The way back of the last commit stays.
            kept_from = min(epoch, stamp.epoch - 1)
            self._db.execute("DELETE FROM epochs WHERE epoch < ?", (kept_from,))
            self._db.execute("DELETE FROM undo WHERE epoch <= ?", (kept_from,))

    def close(self) -> None:
        self.rollback()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    # Entries

    def get(self, key: bytes) -> bytes | None:
        return self.get_many([key])[0]

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self._running  # noqa: B018 - raises without a transaction
        found = (self._db.execute("SELECT value FROM data WHERE key = ?", (key,)).fetchone() for key in keys)
        return [None if row is None else row[0] for row in found]

    def write(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        epoch = self._running.epoch + 1
        changes = [{"epoch": epoch, "key": key, "value": value} for key, value in entries]
        self._db.executemany(_REMEMBER, changes)
        self._put(entries)

    def delete_range(self, start: bytes, end: bytes) -> None:
        self.write([(key, None) for key, _ in self.scan(start, end)])

    def scan(self, start: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
        self._running  # noqa: B018 - raises without a transaction
        # By chunks: who reads may write behind the position.
        query = "SELECT key, value FROM data WHERE key >= ? AND key < ? ORDER BY key LIMIT ?"
        while rows := self._db.execute(query, (start, end, _CHUNK)).fetchall():
            yield from rows
            start = rows[-1][0] + b"\0"

    def last_key(self, start: bytes, end: bytes) -> bytes | None:
        self._running  # noqa: B018 - raises without a transaction
        query = "SELECT max(key) FROM data WHERE key >= ? AND key < ?"
        found: bytes | None = self._db.execute(query, (start, end)).fetchone()[0]
        return found

    # Images

    def strategies(self, of_entries: Sequence[SnapshotStrategy]) -> Sequence[SnapshotStrategy]:
        changed, everything = of_entries
        return changed, AcmeImages(), everything

    def load_native(self, image: NativeImage, reader: SnapshotReader, layers: Sequence[Layer], stamp: Stamp) -> bool:
        if image.engine != ENGINE:
            return False
        with downloaded(image, reader, self.directory) as file:
            self.rollback()
            self._db.execute("ATTACH ? AS image", (str(file),))
            try:
                self._replace((), stamp, "INSERT INTO data SELECT key, value FROM image.entries", layers)
            finally:
                self._db.execute("DETACH image")
        return True

    # Inside

    @property
    def _running(self) -> Stamp:
        if self._base is None:
            raise StateError(f"The store {self.directory} has no transaction; call begin first.")
        return self._base

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            # One thread at a time has it, and it need not be the one that opened it.
            self._connection = sqlite3.connect(
                self.directory / "state.db", timeout=60, isolation_level=None, check_same_thread=False
            )
            # Processes are killed, and hosts that stop lose their stores: nothing has to be synced.
            self._connection.executescript(f"PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; {_TABLES}")
        return self._connection

    def _put(self, entries: Sequence[tuple[bytes, bytes | None]]) -> None:
        self._db.executemany("DELETE FROM data WHERE key = ?", [(key,) for key, value in entries if value is None])
        self._db.executemany("REPLACE INTO data VALUES (?, ?)", [one for one in entries if one[1] is not None])

    def _set_stamp(self, stamp: Stamp) -> None:
        self._db.execute("REPLACE INTO meta VALUES ('stamp', ?)", (encode_stamp(stamp),))
        self._db.execute("REPLACE INTO epochs VALUES (?, ?)", (stamp.epoch, stamp.nonce))

    def _replace(
        self, entries: Batches, stamp: Stamp, first: str = "SELECT 1", layers: Sequence[Layer] = ()
    ) -> None:
        """Other entries, and nothing to step back to, in one transaction."""
        self.rollback()
        self._db.execute("BEGIN IMMEDIATE")
        try:
            for table in ("data", "undo", "epochs"):
                self._db.execute(f"DELETE FROM {table}")
            self._db.execute(first)
            for batch in entries:
                self._put(batch)
            for layer in layers:
                self._db.executemany("DELETE FROM data WHERE key >= ? AND key < ?", layer.ranges)
                for batch in layer.batches:
                    self._put(batch)
            self._set_stamp(stamp)
        except BaseException:
            self.rollback()
            raise
        self._db.execute("COMMIT")
