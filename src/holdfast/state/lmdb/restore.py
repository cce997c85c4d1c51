"""An image of an LMDB database back into a store, or its entries, for whoever cannot take it as it is."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import lmdb

from holdfast.errors import StateError
from holdfast.failpoints import failpoint
from holdfast.state.handles import NativeImage
from holdfast.state.keygroups import KeyGroupRange
from holdfast.state.layout import group_bytes, groups_end
from holdfast.state.lmdb import environments
from holdfast.state.lmdb.image import decode_piece
from holdfast.state.lmdb.rows import scan
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.storage.private_files import private_opener


def make_store(directory: Path, image: NativeImage, reader: SnapshotReader, finish: Callable[[Path], None]) -> None:
    """Put the image into ``directory``, unless another process of the host makes a store there meanwhile.

    It is made in a folder below: ``finish`` gets that folder, and does there what is left to do. A process that is
    killed leaves it, and who comes next begins anew. At last the file is linked to its place, which fails where there
    is one: a file that somebody may have open is never replaced. On a disk without links there is no store then.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory):
        if environments.exists(directory):
            return
        folder = directory / "restoring"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        try:
            _download(image, reader, folder)
            with _opened(folder):
                pass  # or an error says why it cannot be
            finish(folder)
            failpoint("lmdb.restoring", name="whole")
            with suppress(OSError):
                os.link(folder / environments.DATA_FILE, directory / environments.DATA_FILE)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def entries_of(
    image: NativeImage, reader: SnapshotReader, key_groups: KeyGroupRange, scratch: Path | None
) -> Iterator[tuple[bytes, bytes]]:
    """The entries of some key groups, in key order. The file is in a folder below ``scratch`` meanwhile."""
    with tempfile.TemporaryDirectory(prefix="image-", dir=scratch) as name:
        folder = Path(name)
        _download(image, reader, folder)
        with _opened(folder) as database, database.begin(db=database.open_db(b"data", create=False)) as txn:
            yield from scan(txn, group_bytes(key_groups.start), groups_end(key_groups.end))


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """One process of the host at a time; the lock ends with its process."""
    with open(directory / "restoring.lock", "wb", opener=private_opener) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download(image: NativeImage, reader: SnapshotReader, folder: Path) -> None:
    """Each piece is verified by the reader; what is missing or damaged is a CorruptFileError."""
    path = folder / environments.DATA_FILE
    with open(path, "wb", buffering=0, opener=private_opener) as file:
        for piece in image.files:
            failpoint("lmdb.restoring", name=piece.name)
            data = memoryview(decode_piece(reader.read(piece.handle), piece.handle))
            try:
                while data:
                    data = data[file.write(data) :]
            except OSError as error:
                raise StateError(
                    f"The image of a store cannot be written to {path}: {error}. Check the space left on its disk."
                ) from error


@contextmanager
def _opened(folder: Path) -> Iterator[lmdb.Environment]:
    """The image in a folder, to be read; nobody else has it open."""
    try:
        database = lmdb.open(str(folder), max_dbs=environments.DATABASES, readonly=True, lock=False, create=False)
    except lmdb.Error as error:
        raise StateError(
            f"The snapshot holds a database that LMDB {'.'.join(map(str, lmdb.version()))} cannot open here ({error}). "
            "It was written by another version of LMDB or on another kind of machine. Restore it where it was written, "
            "take a savepoint in the canonical format there, and restore that."
        ) from error
    with database:
        yield database
