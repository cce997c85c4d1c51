"""Images of a RocksDB store on its host: what it was at a checkpoint, as hard links to the files of the database.

RocksDB never changes a table file, so an image costs nothing but the files that the database has given up since. It
serves three ends: it is uploaded while the store goes on; the next image stores only files that are not links to the
same ones here; and a later attempt on this host begins with it instead of the checkpoint's files.

``images/<id>/`` holds ``db`` (the files), ``stamp`` (the commit that it belongs to, absent before), ``stored`` (the
handles of the files, absent before the checkpoint is stored), and ``checksums`` (of the files, taken when it is stored;
without them no later attempt begins with the image). Where a checkpoint stored changed keys in place of new files, the
handles are those of the files that its base had stored. An image of a savepoint is in ``savepoints/<id>/``: it is
uploaded and serves no other end, and checkpoints that complete meanwhile do not take it away.
"""

from __future__ import annotations

import logging
import os
import shutil
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from holdfast.errors import StoreDamagedError
from holdfast.failpoints import failpoint
from holdfast.state.digested_file import with_digest, without_digest
from holdfast.state.epoch_log import decode_stamp, encode_stamp
from holdfast.state.handles import NativeFile, NativeImage
from holdfast.state.rocksdb.library import load_engine
from holdfast.state.snapshot_io import SnapshotReader
from holdfast.state.store import Stamp
from holdfast.storage.checksum import checksum
from holdfast.storage.private_files import write_private

_log = logging.getLogger(__name__)

ENGINE = "rocksdb"
_TABLES = ".sst"
#: A database is opened with the options of whoever opens it.
_NOT_NEEDED = "OPTIONS-"


class Deltas(msgspec.Struct, frozen=True, array_like=True):
    """What checkpoints have stored as changed keys since one last stored all files."""

    bytes: int = 0
    files: int = 0


NO_DELTAS = Deltas()


class _Stored(msgspec.Struct, frozen=True, array_like=True):
    files: tuple[NativeFile, ...]
    deltas: Deltas


_stored_decoder = msgspec.msgpack.Decoder(_Stored)
_checksums_decoder = msgspec.msgpack.Decoder(dict[str, str])


@dataclass(frozen=True)
class LocalImage:
    """One image."""

    folder: Path

    @property
    def database(self) -> Path:
        return self.folder / "db"

    @property
    def stamp(self) -> Stamp | None:
        data = self._read("stamp")
        return None if data is None else decode_stamp(data)

    def settle(self, stamp: Stamp) -> None:
        """It is what the store was committed as. Without that note, which may fail, it is of no further use."""
        with suppress(OSError):
            self._write("stamp", encode_stamp(stamp))

    @property
    def stored(self) -> tuple[NativeFile, ...] | None:
        """Where its files are stored, those that are; None while the checkpoint is not."""
        stored = self._stored()
        return None if stored is None else stored.files

    @property
    def deltas(self) -> Deltas:
        """Deltas that its checkpoint has on top of these files."""
        stored = self._stored()
        return NO_DELTAS if stored is None else stored.deltas

    def set_stored(self, files: Iterable[NativeFile], deltas: Deltas = NO_DELTAS) -> None:
        with suppress(FileNotFoundError):  # a later checkpoint has completed, and the image is gone
            self._write("stored", msgspec.msgpack.encode(_Stored(tuple(files), deltas)))

    def _stored(self) -> _Stored | None:
        data = self._read("stored")
        return None if data is None else _stored_decoder.decode(data)

    @property
    def checksums(self) -> dict[str, str]:
        """The checksums of the image's files, by name; empty before they are taken."""
        data = self._read("checksums")
        return {} if data is None else _checksums_decoder.decode(data)

    def take_checksums(self, known: Mapping[str, str]) -> None:
        """Read those of its files that are not ``known`` by their checksums."""
        with suppress(FileNotFoundError):  # a later checkpoint has completed, and the image is gone
            own = {name: known.get(name) or checksum((self.database / name).read_bytes()) for name in self.names()}
            self._write("checksums", msgspec.msgpack.encode(own))

    def known_of(self, base: LocalImage) -> dict[str, str]:
        """Checksums that ``base`` has of files that are the same here."""
        return {name: known for name, known in base.checksums.items() if self._is_link(base, name)}

    def check(self) -> bool:
        """Whether its files can be compared. StoreDamagedError when one is not what was written."""
        data = self._read_whole("checksums")
        if data is None:
            return False
        expected = _checksums_decoder.decode(data)
        for name in sorted({*expected, *self.names()}):
            path = self.database / name
            if name not in expected or not path.exists() or checksum(path.read_bytes()) != expected[name]:
                raise StoreDamagedError(f"{path} is damaged: its checksum is not the one that was taken of it.")
        return True

    def names(self) -> list[str]:
        """Names of the files that it takes to open the database."""
        return sorted(path.name for path in self.database.iterdir() if not path.name.startswith(_NOT_NEEDED))

    def size_of(self, names: Iterable[str]) -> int:
        return sum((self.database / name).stat().st_size for name in names)

    def held_of(self, base: LocalImage) -> dict[str, NativeFile]:
        """Files that ``base`` has stored and that are the same here: links to one file, which no name can feign."""
        return {file.name: file for file in base.stored or () if self._same(base, file)}

    def link_to(self, database: Any) -> None:
        """Take what an open database is now."""
        database.flush()
        load_engine().Checkpoint(database).create_checkpoint(str(self.database))

    def link_into(self, target: Path) -> None:
        """Make the files of a database in ``target``. Those that RocksDB writes on are copied."""
        target.mkdir(parents=True)
        for path in (self.database / name for name in self.names()):
            place = os.link if path.suffix == _TABLES else shutil.copyfile
            place(path, target / path.name)

    def drop(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _same(self, base: LocalImage, file: NativeFile) -> bool:
        return self._is_link(base, file.name) and (self.database / file.name).stat().st_size == file.handle.size

    def _is_link(self, base: LocalImage, name: str) -> bool:
        mine, its = self.database / name, base.database / name
        return name.endswith(_TABLES) and mine.exists() and its.exists() and mine.samefile(its)

    def _read(self, name: str) -> bytes | None:
        """A damaged one is as good as none."""
        try:
            return self._read_whole(name)
        except StoreDamagedError as damaged:
            _log.warning("%s It is not used.", damaged)
            return None

    def _read_whole(self, name: str) -> bytes | None:
        path = self.folder / name
        try:
            return without_digest(path.read_bytes(), path, self._full_name(name))
        except FileNotFoundError:
            return None

    def _write(self, name: str, data: bytes) -> None:
        temporary = self.folder / f"{name}.tmp"
        write_private(temporary, with_digest(data, self._full_name(name)))
        temporary.replace(self.folder / name)

    def _full_name(self, name: str) -> str:
        """No other image's: their ids are unique."""
        return f"{self.folder.name}/{name}"


class LocalImages:
    """The images of one store. Used by who holds the store's lock, but for copies and uploads."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "images"
        self._savepoints = directory / "savepoints"

    def new(self) -> LocalImage:
        """An image without files."""
        return _new_in(self._directory)

    def new_for_savepoint(self) -> LocalImage:
        """An image without files that stays until its upload is over, or the store goes."""
        return _new_in(self._savepoints)

    def all(self) -> list[LocalImage]:
        try:
            return [LocalImage(Path(entry.path)) for entry in os.scandir(self._directory)]
        except FileNotFoundError:
            return []

    def at(self, stamp: Stamp) -> LocalImage | None:
        return next((one for one in self.all() if one.stamp == stamp), None)

    def stored_at(self, epoch: int) -> LocalImage | None:
        """The image of a committed epoch, if all of it is stored."""
        for one in self.all():
            stamp = one.stamp
            if stamp is not None and stamp.epoch == epoch and one.stored is not None:
                return one
        return None

    def keep_until(self, stamp: Stamp) -> None:
        """The store goes on from ``stamp``: images of executions that died, or were not accepted, go."""
        for one in self.all():
            found = one.stamp
            if found is None or found.epoch > stamp.epoch or (found.epoch == stamp.epoch and found != stamp):
                one.drop()

    def drop_before(self, epoch: int) -> None:
        """The checkpoint of ``epoch`` is complete."""
        for one in self.all():
            stamp = one.stamp
            if stamp is not None and stamp.epoch < epoch:
                one.drop()

    def drop_all(self) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def adopt(self, image: LocalImage) -> LocalImage:
        """An image with the files of another store's."""
        mine = self.new()
        image.link_into(mine.database)
        stored = image.stored
        if stored is not None:
            mine.set_stored(stored, image.deltas)
        mine.take_checksums(image.checksums)
        return mine

    def download(self, image: NativeImage, reader: SnapshotReader) -> LocalImage:
        """An image with the files of a snapshot."""
        mine = self.new()
        download_files(image, reader, mine.database)
        mine.set_stored(image.files)
        mine.take_checksums({})
        return mine


def _new_in(directory: Path) -> LocalImage:
    image = LocalImage(directory / uuid.uuid4().hex)
    image.folder.mkdir(parents=True)
    return image


def download_files(image: NativeImage, reader: SnapshotReader, target: Path) -> None:
    """Each is verified by the reader; what is missing or damaged is a CorruptFileError."""
    target.mkdir()
    for file in image.files:
        failpoint("rocksdb.restoring", name=file.name)
        write_private(target / file.name, reader.read(file.handle))
