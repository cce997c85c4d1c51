"""Native images: all entries of a store in one database of SQLite, stored in pieces.

An image has everything, the index of timers too, so that it is taken back as it is. Whoever reads its entries for
another backend gets those of key groups alone.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from holdfast.state.handles import CheckpointRequest, KeyedSnapshot, NativeFile, NativeImage
from holdfast.state.keyed_backend import KeyedStateBackend
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.snapshot_io import SnapshotReader, SnapshotWriter
from holdfast.state.strategies import PreparedSnapshot, SnapshotStrategy, empty_frame

ENGINE = "acme"
_PIECE = 64 << 10
_ABOVE_ALL = b"\xff" * 600


class AcmeImages(SnapshotStrategy):
    name = "acme-image"

    def prepare(
        self, backend: KeyedStateBackend, request: CheckpointRequest, base_epoch: int | None
    ) -> PreparedSnapshot | None:
        if backend.ttl.filters_full_images:
            return None  # expired entries are to be left out, and an image has everything
        key_groups = backend.scope.key_groups
        first = next(backend.store.scan(group_bytes(key_groups.start), groups_end(key_groups.end)), None)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "image.db"
            with closing(sqlite3.connect(file)) as image, image:
                image.execute("PRAGMA journal_mode = OFF")
                image.execute("CREATE TABLE entries (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID")
                image.executemany("INSERT INTO entries VALUES (?, ?)", backend.store.scan(b"", _ABOVE_ALL))
            data = file.read_bytes()
        return _Prepared(self.name, data, first is None, request.checkpoint_id, empty_frame(backend))


@dataclass(frozen=True)
class _Prepared(PreparedSnapshot):
    strategy: str
    data: bytes
    empty: bool
    checkpoint_id: int
    frame: KeyedSnapshot

    def write(
        self, writer: SnapshotWriter, name: str, shared: bool, heartbeat: Callable[[], None] | None
    ) -> KeyedSnapshot:
        files = []
        for at in range(0, len(self.data), _PIECE):
            if heartbeat is not None:
                heartbeat()
            handle = writer.write(f"{name}-acme-{at}", self.data[at : at + _PIECE], shared)
            files.append(NativeFile(f"{at:012}", handle, self.checkpoint_id))
        return msgspec.structs.replace(self.frame, native=NativeImage(ENGINE, tuple(files), self.empty))


@contextmanager
def downloaded(image: NativeImage, reader: SnapshotReader, scratch: Path | None) -> Iterator[Path]:
    """The image as a file for a while. The reader verifies each piece."""
    with tempfile.TemporaryDirectory(prefix="image-", dir=scratch) as folder:
        file = Path(folder) / "image.db"
        with file.open("wb") as target:
            for piece in image.files:
                target.write(reader.read(piece.handle))
        yield file


def entries_of(
    image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
) -> Iterator[tuple[bytes, bytes]]:
    with downloaded(image, reader, scratch) as file, closing(sqlite3.connect(file)) as database:
        query = "SELECT key, value FROM entries WHERE key >= ? AND key < ? ORDER BY key"
        yield from database.execute(query, (group_bytes(key_groups.start), groups_end(key_groups.end)))
